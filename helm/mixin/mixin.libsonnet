// Spanwise for jsonnet users: dashboard, alerts and recording rules. rules.json and dashboard.json are generated.
local generated = import 'rules.json';
local dashboard = import 'dashboard.json';

{
  _config+:: {
    // Where the page stands, without a slash at its end: alerts and the dashboard lead there.
    page: 'http://127.0.0.1:4390',
    // What `runbook_url` begins with; `#` and the alert's name in small letters follow. By default the page's own help.
    runbookUrl: self.page + '/help',
    // Added to the labels of every alert.
    alertLabels: {},
    // Alerts that are left out, by name.
    disabledAlerts: [],
    // Whether there are burn rates. They need an objective: `slo.objective` or `evaluators.<name>.objective`.
    objectives: true,
    // Labels of the dashboard's list in Grafana.
    dashboardTags: dashboard.tags,
  },

  local groups = [
    group
    for group in generated.groups
    if $._config.objectives || group.name != 'spanwise-objectives'
  ],

  local moved(text) = std.strReplace(text, generated.page, $._config.page),

  local alert(rule) = rule {
    labels+: $._config.alertLabels,
    annotations: {
      summary: rule.annotations.summary,
      description: rule.annotations.description,
      page: moved(rule.annotations.page),
      runbook_url: '%s#%s' % [$._config.runbookUrl, std.asciiLower(rule.alert)],
    },
  },

  local kept(rules) = [
    alert(rule)
    for rule in rules
    if std.objectHas(rule, 'alert') && !std.member($._config.disabledAlerts, rule.alert)
  ],

  grafanaDashboards+:: {
    'spanwise-agents.json': dashboard {
      tags: $._config.dashboardTags,
      templating+: {
        list: [
          if variable.name == 'page' then std.parseJson(moved(std.manifestJson(variable))) else variable
          for variable in dashboard.templating.list
        ],
      },
    },
  },

  prometheusAlerts+:: {
    groups+: [
      { name: group.name, rules: kept(group.rules) }
      for group in groups
      if kept(group.rules) != []
    ],
  },

  prometheusRules+:: {
    groups+: [
      { name: group.name + '-recorded', rules: [rule for rule in group.rules if std.objectHas(rule, 'record')] }
      for group in groups
      if std.length([rule for rule in group.rules if std.objectHas(rule, 'record')]) > 0
    ],
  },
}
