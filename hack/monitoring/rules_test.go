//go:build !race

// These tests are left out under the race detector: the modules of Prometheus are large, and the operator has its own tests with the race
// detector.

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var (
	rulesFile     = filepath.Join(docs, "monitoring", "rules.yaml")
	dashboardFile = filepath.Join(docs, "monitoring", "dashboard.json")
	pageFile      = filepath.Join(docs, "monitoring.md")
)

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}

func ruleFile(t *testing.T) *rules {
	t.Helper()
	r, err := loadRules(rulesFile)
	require.NoError(t, err)
	return r
}

// Each alert has a waiting time, a severity and a text that says what to do, and links to its heading on the page.
func TestAlertsAreComplete(t *testing.T) {
	page := read(t, pageFile)
	for _, a := range ruleFile(t).alerts() {
		assert.Positive(t, a.For, a.Alert)
		assert.Contains(t, []string{"warning", "critical"}, a.Labels["severity"], a.Alert)
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
		assert.NotEmpty(t, a.Annotations["description"], a.Alert)
		assert.Equal(t, "https://github.com/opblocks/opblocks/blob/main/docs/monitoring.md#"+strings.ToLower(a.Alert), a.Annotations["runbook_url"])
		assert.Contains(t, page, "\n### "+a.Alert+"\n", "the page describes the alert")
	}
}

// TestAlerts has series of broken objects and series of sound ones, with a sample each minute.
func TestAlerts(t *testing.T) {
	const minutes = 120
	cases := map[string]struct {
		reason string
		series []string
		want   []string // the summaries of all alerts that fire at the end
	}{
		"OpblocksObjectStalled": {
			reason: "The condition Stalled is True or absent. One object was stalled for ten minutes, one has been for the last ten, and one has no namespace.",
			series: []string{
				`opblocks_condition{job="o", kind="Site", namespace="a", name="broken", type="Stalled"} 1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="broken", type="Ready"} 0x120`,
				`opblocks_condition{job="o", kind="Zone", name="wide", type="Stalled"} 1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="sound", type="Ready"} 1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="repaired", type="Stalled"} 1x10 stale`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="recent", type="Stalled"} _x110 1x9`,
			},
			want: []string{"Site a/broken is stalled", "Zone wide is stalled"},
		},
		"OpblocksObjectNotReady": {
			reason: "False and Unknown are not ready. A paused object waits on purpose, and a stalled one has an alert of its own.",
			series: []string{
				`opblocks_condition{job="o", kind="Site", namespace="a", name="waiting", type="Ready"} 0x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="waiting", type="Reconciling"} 1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="unknown", type="Ready"} -1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="paused", type="Ready"} 0x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="paused", type="Paused"} 1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="slow", type="Ready"} 0x20 1x99`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="new", type="Ready"} _x100 0x19`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="sound", type="Ready"} 1x120`,
				`opblocks_condition{job="o", kind="Site", namespace="a", name="sound", type="ServiceReady"} 0x120`,
			},
			want: []string{"Site a/unknown has not been ready for 30 minutes", "Site a/waiting has not been ready for 30 minutes"},
		},
		"OpblocksWriteLoop": {
			reason: "The series of a loop is removed when it ends. A loop that has just begun may end.",
			series: []string{
				`opblocks_write_loop{job="o", kind="Service", namespace="a", name="contested", path="spec.selector"} 1x120`,
				`opblocks_write_loop{job="o", kind="Service", namespace="a", name="settled", path="spec.selector"} 1x30 stale`,
				`opblocks_write_loop{job="o", kind="Service", namespace="a", name="recent", path="spec.selector"} _x115 1x4`,
			},
			want: []string{"Another writer changes Service a/contested back again and again"},
		},
		"OpblocksStepFailing": {
			reason: "One object that fails each minute is enough. Many that succeed hide a few failures, and a step that does not run has no failures.",
			series: []string{
				`opblocks_step_results_total{job="o", kind="Site", step="database", result="failed"} 0+3x120`,
				`opblocks_step_results_total{job="o", kind="Site", step="database", result="succeeded"} 0+1x120`,
				`opblocks_step_results_total{job="o", kind="Site", step="service", result="failed"} 0+1x120`,
				`opblocks_step_results_total{job="o", kind="Site", step="service", result="succeeded"} 0+20x120`,
				`opblocks_step_results_total{job="o", kind="Site", step="idle", result="failed"} 50x120`,
				`opblocks_step_results_total{job="o", kind="Site", step="restored", result="failed"} 0+1x60 60x59`,
			},
			want: []string{"Step database of Site fails in 75% of its runs"},
		},
		"OpblocksQueueNotDraining": {
			reason: "The requests of all priorities count. A queue that is empty now and then drains.",
			series: []string{
				`workqueue_depth{job="o", name="site", controller="site", priority="0"} 6x120`,
				`workqueue_depth{job="o", name="site", controller="site", priority="-100"} 6x120`,
				`workqueue_depth{job="o", name="zone", controller="zone", priority="0"} 80 0 80x10 0 80x12 0 80x10 0 80x14 0 80x14 0 80x10 0 80x14 0 80x14 0 80x8`,
			},
			want: []string{"The queue of controller site has had more than 10 requests for 15 minutes"},
		},
		"OpblocksReconcileSlow": {
			reason: "Only the slowest passes count.",
			series: []string{
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="site", le="1"} 0+90x120`,
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="site", le="8"} 0+98x120`,
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="site", le="10"} 0+100x120`,
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="site", le="+Inf"} 0+100x120`,
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="zone", le="1"} 0+100x120`,
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="zone", le="10"} 0+100x120`,
				`controller_runtime_reconcile_time_seconds_bucket{job="o", controller="zone", le="+Inf"} 0+100x120`,
			},
			want: []string{"One pass in a hundred of controller site takes more than 9s"},
		},
		"OpblocksReconcileStuck": {
			reason: "A pass that takes five minutes may end.",
			series: []string{
				`workqueue_longest_running_processor_seconds{job="o", name="site", controller="site"} 0+60x120`,
				`workqueue_longest_running_processor_seconds{job="o", name="zone", controller="zone"} 300x120`,
			},
			want: []string{"A pass of controller site has been running for 2h 0m 0s"},
		},
		"OpblocksServerUnreachable": {
			reason: "A server that is reached again within the time is not spared any more. Standbys have no series.",
			series: []string{
				`opblocks_external_spared_servers{job="o", kind="Site", step="dns"} 1x120`,
				`opblocks_external_spared_servers{job="o", kind="Site", step="bucket"} 1x50 0 1x60 0x8`,
				`opblocks_external_spared_servers{job="o", kind="Site", step="recent"} 0x110 1x9`,
				`opblocks_external_spared_servers{job="o", kind="Site", step="sound"} 0x120`,
			},
			want: []string{"A server that step dns of Site calls has not been reached for 15 minutes"},
		},
		"OpblocksCallsNotReturning": {
			reason: "One call is enough: its object has no other. One that returns within the time is only slow.",
			series: []string{
				`opblocks_external_calls_not_returned{job="o", kind="Site", step="dns"} 0x60 2x59`,
				`opblocks_external_calls_not_returned{job="o", kind="Site", step="slow"} 0x60 1x10 0x49`,
			},
			want: []string{"2 calls of step dns of Site do not return"},
		},
		"OpblocksRequestsFailing": {
			reason: "Conflicts and missing objects are answers like others.",
			series: []string{
				`rest_client_requests_total{job="o", host="h", method="PATCH", code="200"} 0+6x120`,
				`rest_client_requests_total{job="o", host="h", method="PATCH", code="500"} 0+1x120`,
				`rest_client_requests_total{job="o", host="h", method="PUT", code="429"} 0+1x120`,
				`rest_client_requests_total{job="o", host="h", method="PUT", code="<error>"} 0+2x120`,
				`rest_client_requests_total{job="p", host="h", method="PATCH", code="200"} 0+60x120`,
				`rest_client_requests_total{job="p", host="h", method="PATCH", code="409"} 0+60x120`,
				`rest_client_requests_total{job="p", host="h", method="GET", code="404"} 0+60x120`,
				`rest_client_requests_total{job="p", host="h", method="PATCH", code="503"} 0+1x120`,
			},
			want: []string{"40% of the requests of o to the API server fail"},
		},
		"OpblocksNoLeader": {
			reason: "Standbys alone are no leader, and an operator all of whose replicas are gone has none either. A lease that was held an hour ago is forgotten.",
			series: []string{
				`leader_election_master_status{job="standbys", instance="1", name="lease"} 1x60 0x59`,
				`leader_election_master_status{job="standbys", instance="2", name="lease"} 0x120`,
				`leader_election_master_status{job="gone", instance="1", name="lease"} 1x90 stale`,
				`leader_election_master_status{job="removed", instance="1", name="lease"} 1x30 stale`,
				`leader_election_master_status{job="sound", instance="1", name="lease"} 0x120`,
				`leader_election_master_status{job="sound", instance="2", name="lease"} 1x120`,
				`leader_election_master_status{job="moved", instance="1", name="lease"} 1x60 stale`,
				`leader_election_master_status{job="moved", instance="2", name="lease"} 0x60 1x59`,
			},
			want: []string{"No replica of gone holds the lease lease", "No replica of standbys holds the lease lease"},
		},
	}
	r := ruleFile(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			db := newDatabase()
			for _, s := range tc.series {
				require.NoError(t, db.load(s, start, time.Minute))
			}
			firing, err := r.evaluate(t.Context(), db, start, start.Add(minutes*time.Minute), time.Minute)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, firing); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
	for _, a := range r.alerts() {
		assert.Contains(t, cases, a.Alert, "each alert has a case")
	}
}

// The recording rules count objects by namespace, even if no object in a namespace is ready.
func TestRecordingRules(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := newDatabase()
	for _, s := range []string{
		`opblocks_condition{job="o", kind="Site", namespace="a", name="one", type="Ready"} 1x20`,
		`opblocks_condition{job="o", kind="Site", namespace="a", name="two", type="Ready"} 0x20`,
		`opblocks_condition{job="o", kind="Site", namespace="b", name="one", type="Ready"} -1x20`,
	} {
		require.NoError(t, db.load(s, start, time.Minute))
	}
	end := start.Add(20 * time.Minute)
	_, err := ruleFile(t).evaluate(t.Context(), db, start, end, time.Minute)
	require.NoError(t, err)
	got := map[string]float64{}
	for _, record := range []string{"job_kind_namespace:opblocks_objects:count", "job_kind_namespace:opblocks_objects_ready:count"} {
		result, err := db.at(t.Context(), record, end)
		require.NoError(t, err)
		for _, s := range result {
			got[record+" "+s.Metric.Get("namespace")] = s.F
		}
	}
	want := map[string]float64{
		"job_kind_namespace:opblocks_objects:count a": 2, "job_kind_namespace:opblocks_objects:count b": 1,
		"job_kind_namespace:opblocks_objects_ready:count a": 1, "job_kind_namespace:opblocks_objects_ready:count b": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The generated PrometheusRule has the rules of the rule file.
func TestPrometheusRule(t *testing.T) {
	var object struct {
		APIVersion, Kind string
		Spec             any
	}
	require.NoError(t, yaml.Unmarshal(prometheusRule([]byte(read(t, rulesFile))), &object))
	require.Equal(t, "monitoring.coreos.com/v1 PrometheusRule", object.APIVersion+" "+object.Kind)
	var rules any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, rulesFile)), &rules))
	if diff := cmp.Diff(rules, object.Spec); diff != "" {
		t.Errorf("(-rules.yaml +prometheusrule.yaml)\n%s", diff)
	}
}

// The generated files are up to date.
func TestDerivedFiles(t *testing.T) {
	d, err := loadDashboard(dashboardFile)
	require.NoError(t, err)
	files, err := derived(d)
	require.NoError(t, err)
	for name, content := range files {
		if read(t, name) != string(content) {
			t.Errorf("%s is out of date: run `go run .` in hack/monitoring", name)
		}
	}
}
