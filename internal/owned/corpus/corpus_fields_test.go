package corpus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// path leads to a value in decoded JSON. Its steps are names of fields and indices of list items.
type path []any

func (p path) String() string {
	var s strings.Builder
	for _, step := range p {
		fmt.Fprintf(&s, "/%v", step)
	}
	return s.String()
}

// pointer returns the path as a JSON pointer (RFC 6901).
func (p path) pointer() string {
	var s strings.Builder
	for _, step := range p {
		s.WriteByte('/')
		s.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step)))
	}
	return s.String()
}

// with returns the path of a field or item below p.
func (p path) with(step any) path { return append(slices.Clip(p), step) }

// in returns the value at the path in v, and whether v has such a value.
func (p path) in(v any) (any, bool) {
	for _, step := range p {
		switch at := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			next, ok := m[at]
			if !ok {
				return nil, false
			}
			v = next
		case int:
			list, _ := v.([]any)
			if at >= len(list) {
				return nil, false
			}
			v = list[at]
		}
	}
	return v, true
}

// field returns the last step on the path that is a name of a field.
func (p path) field() string {
	for _, step := range slices.Backward(p) {
		if name, ok := step.(string); ok {
			return name
		}
	}
	return ""
}

// lists returns the paths of the lists around the value, innermost first.
func (p path) lists() []path {
	var lists []path
	for i, step := range slices.Backward(p) {
		if _, item := step.(int); item {
			lists = append(lists, p[:i])
		}
	}
	return lists
}

// withoutPath returns a copy of v without the value at p.
func withoutPath(v any, p path) any {
	if len(p) == 1 {
		switch v := v.(type) {
		case map[string]any:
			v = maps.Clone(v)
			delete(v, p[0].(string))
			return v
		case []any:
			return slices.Delete(slices.Clone(v), p[0].(int), p[0].(int)+1)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		v[p[0].(string)] = withoutPath(v[p[0].(string)], p[1:])
		return v
	case []any:
		v = slices.Clone(v)
		v[p[0].(int)] = withoutPath(v[p[0].(int)], p[1:])
		return v
	}
	return v
}

// withValue returns a copy of v with a value at p.
func withValue(v any, p path, value any) any {
	if len(p) == 0 {
		return value
	}
	switch step := p[0].(type) {
	case int:
		items, _ := v.([]any)
		items = slices.Clone(items)
		if step == len(items) {
			items = append(items, nil)
		}
		items[step] = withValue(items[step], p[1:], value)
		return items
	case string:
		fields, _ := v.(map[string]any)
		fields = maps.Clone(fields)
		if fields == nil {
			fields = map[string]any{}
		}
		fields[step] = withValue(fields[step], p[1:], value)
		return fields
	}
	return v
}

// fieldsOf returns the paths of all values that an object sets, and of the structs, maps and lists around them. It leaves out the object's
// kind and name.
func fieldsOf(object map[string]any) []path {
	var found []path
	var walk func(v any, at path)
	walk = func(v any, at path) {
		switch at.String() {
		case "/apiVersion", "/kind", "/metadata/name", "/metadata/namespace":
			return
		case "", "/metadata", "/spec":
		default:
			found = append(found, at)
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k], at.with(k))
			}
		case []any:
			for i, item := range v {
				walk(item, at.with(i))
			}
		}
	}
	walk(object, nil)
	return found
}

// isLeaf reports whether v contains no other values.
func isLeaf(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return true
}

// bisect tries all paths together. If that fails, it tries each half, and so on.
func bisect(paths []path, try func([]path) bool) {
	if len(paths) > 0 && !try(paths) && len(paths) > 1 {
		bisect(paths[:len(paths)/2], try)
		bisect(paths[len(paths)/2:], try)
	}
}

// alternatives are groups of values. The API accepts each value of a group in the same fields.
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

// otherValues returns the values to try in place of v, in order. nil means that the field is removed.
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

// otherTexts returns the strings to try in place of v, in order.
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
