# The same install lines as the Makefile. Not built in CI: there is no container engine there.
FROM python:3.11-slim-bookworm
WORKDIR /app
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m pip --disable-pip-version-check -q install --no-cache-dir --require-hashes -r requirements.lock
COPY collector ./collector
COPY evaluators ./evaluators
RUN python -m pip --disable-pip-version-check -q install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --uid 10001 --create-home spanwise && mkdir /data && chown spanwise /data
USER 10001
ENV PYTHONDONTWRITEBYTECODE=1 SPANWISE_DATA_DIR=/data \
    SPANWISE_RECEIVER__GRPC__HOST=0.0.0.0 SPANWISE_RECEIVER__HTTP__HOST=0.0.0.0 SPANWISE_ADMIN__HOST=0.0.0.0
VOLUME /data
EXPOSE 4317 4318 4390
ENTRYPOINT ["spanwise"]
CMD ["run"]
