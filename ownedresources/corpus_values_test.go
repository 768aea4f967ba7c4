package ownedresources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// alternatives are values of which the API takes one in place of another.
var alternatives = [][]any{
	{"TCP", "UDP", "SCTP"}, {"Always", "IfNotPresent", "Never", "OnFailure"}, {"ClusterIP", "NodePort", "LoadBalancer"},
	{"Cluster", "Local"}, {"RollingUpdate", "OnDelete"}, {"ClientIP", "None"}, {"Forbid", "Allow", "Replace"},
	{"DoNotSchedule", "ScheduleAnyway"}, {"Exact", "Prefix", "ImplementationSpecific"}, {"HTTP", "HTTPS"}, {"Ignore", "Honor", "Fail"},
	{"Retain", "Delete"}, {"Deny", "Warn", "Audit"}, {"In", "NotIn", "Exists", "DoesNotExist"}, {"Equal", "Exists"},
	{"NoSchedule", "NoExecute", "PreferNoSchedule"}, {"RuntimeDefault", "Unconfined"}, {"ClusterFirst", "Default"},
	{"File", "FallbackToLogsOnError"}, {"Max", "Min", "Disabled"}, {"Percent", "Pods"}, {"Utilization", "AverageValue", "Value"},
	{"CREATE", "UPDATE", "DELETE"}, {"Equivalent", "Exact"}, {"Never", "IfNeeded"}, {"None", "NoneOnDryRun"}, {"Allow", "Deny"},
	{"AlwaysAllow", "IfHealthyBudget"}, {"PreferDualStack", "SingleStack"}, {"PreferClose", "PreferSameNode"}, {"ByUser", "ByNamespace"},
	{"User", "Group"}, {"OnRootMismatch", "Always"}, {"Strict", "Merge"}, {"Directory", "File"}, {"HostToContainer", "None"},
	{"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"}, {"Namespaced", "*"}, {"Forbidden", "Invalid"}, {"All", "ExactCount"},
	{"NotRequired", "RestartContainer"}, {"Persistent", "Ephemeral"}, {"Namespace", "Cluster"}, {"Failed", "TerminatingOrFailed"},
	{"FailIndex", "FailJob", "Ignore", "Count"}, {"PriorityClass", "Terminating"}, {"string", "integer"},
}

// otherValues are tried, one after the other, in place of a value of ours; nil removes it.
func otherValues(at path, v any) []any {
	switch v := v.(type) {
	case bool:
		return []any{!v, nil}
	case int64:
		return []any{v + 1, v - 1, nil}
	case float64:
		return []any{v + 1, v - 0.5, nil}
	case string:
		return append(otherTexts(at, v), nil)
	case map[string]any:
		if len(v) == 0 && strings.HasSuffix(strings.ToLower(at.field()), "selector") {
			return []any{map[string]any{"matchLabels": map[string]any{"theirs": "x"}}, nil}
		}
	}
	return []any{nil}
}

func otherTexts(at path, v string) []any {
	var others []any
	for _, group := range alternatives {
		if slices.Contains(group, any(v)) {
			for _, other := range group {
				if other != any(v) {
					others = append(others, other)
				}
			}
		}
	}
	if len(others) > 0 {
		return others
	}
	switch last := at[len(at)-1]; {
	case len(at) == 2 && (at[0] == "data" || at[0] == "binaryData"):
		return []any{"dGhlaXJz", v + "x"}
	case last == "timeout":
		return []any{"5m0s"}
	case last == "schedule":
		return []any{"1 2 3 * *"}
	case strings.HasSuffix(fmt.Sprint(last), "Time"):
		return []any{"2031-01-01T00:00:00.000000Z"}
	}
	number, err := strconv.ParseFloat(strings.TrimRight(v, "numkKMGTPEi%"), 64)
	switch {
	case strings.Count(v, ".") == 3 && strings.Contains(v, "/"):
		return []any{"10.9.0.0/16", "172.17.9.0/24"}
	case strings.Count(v, ".") == 3:
		return []any{"203.0.113.99"}
	case err == nil && strings.HasSuffix(v, "%"):
		return []any{strconv.Itoa(int(number)+1) + "%"}
	case err == nil:
		return []any{"1" + v, "2", v + "x"}
	}
	return []any{v + "x", v + "/x", "theirs"}
}
