# The image of Spanwise: `docker build -t spanwise .` (or podman). How one is published: docs/release.md

# The index digest (all platforms) under which public Dockerfiles name this tag. A wrong or withdrawn digest fails the
# build; docs/release.md says how to renew it.
ARG BASE=python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3

FROM ${BASE} AS builder
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
COPY locks/requirements-image.lock ./
RUN python -m venv /opt/tools \
    && /opt/tools/bin/python -m pip -q install --no-compile --require-hashes -r requirements-image.lock
COPY locks/requirements.lock locks/requirements-bedrock.lock ./
# `--build-arg BEDROCK=yes` for judges on Amazon Bedrock or SageMaker (docs/install.md)
ARG BEDROCK=
RUN python -m venv --without-pip /opt/spanwise \
    && /opt/tools/bin/uv pip install -q --python /opt/spanwise/bin/python --no-deps --require-hashes \
        -r requirements.lock ${BEDROCK:+-r requirements-bedrock.lock}
COPY pyproject.toml README.md LICENSE ./
COPY collector ./collector
COPY evaluators ./evaluators
COPY spanwise ./spanwise
ARG SBOM_CHECK=--validate
# setuptools only builds. The bytecode is not compared with the sources' times: a copy may change them.
RUN /opt/tools/bin/uv pip install -q --python /opt/spanwise/bin/python --no-deps --no-build-isolation . \
    && /opt/tools/bin/uv pip uninstall -q --python /opt/spanwise/bin/python setuptools \
    && /opt/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application \
        --spec-version 1.6 --output-reproducible ${SBOM_CHECK} -o /opt/sbom.cdx.json /opt/spanwise/bin/python \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/spanwise/lib

FROM ${BASE}
ARG BASE
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Spanwise" \
    org.opencontainers.image.description="Scores your AI agents from the OpenTelemetry traces they already send." \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.base.name="${BASE}"
# The base has no bytecode of the standard library, and a read-only root could not keep any.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/(site-packages|test|idlelib|lib2to3)/' \
        /usr/local/lib/python3.11 \
    && groupadd --gid 10001 spanwise \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin spanwise \
    && install -d -o 10001 -g 10001 -m 0700 /data
COPY LICENSE /usr/share/spanwise/
COPY --from=builder /opt/sbom.cdx.json /usr/share/spanwise/
COPY --from=builder /opt/spanwise /opt/spanwise
# Only /data and /tmp are written to.
ENV PATH=/opt/spanwise/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 SPANWISE_DATA_DIR=/data \
    SPANWISE_RECEIVER__GRPC__HOST=0.0.0.0 SPANWISE_RECEIVER__HTTP__HOST=0.0.0.0 SPANWISE_ADMIN__HOST=0.0.0.0
WORKDIR /data
USER 10001:10001
VOLUME /data
EXPOSE 4317 4318 4390
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-P", "-m", "collector.commands.healthcheck"]
# The kernel drops a signal to a container's first process that has no handler yet. One that is blocked waits until
# collector/commands/start.py has a handler.
ENTRYPOINT ["env", "--block-signal=TERM,INT,HUP", "spanwise"]
CMD ["run"]
