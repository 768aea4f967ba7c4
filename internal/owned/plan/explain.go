package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Explain returns the refusal with more detail: if the API server names only the whole spec, Explain adds the fields of the spec that the
// apply would add or change. It returns any other error unchanged.
func (r *Refused) Explain(refusal error) error {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return refusal
	}
	var names []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "spec" && cause.Field != "spec.template" {
			return refusal
		}
		names = append(names, namesBelow(r.wishes, cause.Field)...)
	}
	const most = 3
	if names = slices.Compact(slices.Sorted(slices.Values(names))); len(names) == 0 {
		return refusal
	} else if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return fmt.Errorf("%w (the apply would change %s)", refusal, strings.Join(names, ", "))
}

// namesBelow returns the paths of the outermost fields of a set that are inside of a field.
func namesBelow(fields *fieldpath.Set, field string) (names []string) {
	for path := range fields.All() { // an outer field comes before the fields inside of it
		name := nameOf(path)
		if isBelow(name, field) && !slices.ContainsFunc(names, func(outer string) bool { return name == outer || isBelow(name, outer) }) {
			names = append(names, name)
		}
	}
	return names
}

// isBelow reports whether the path leads to a field or an item inside of the field at outer.
func isBelow(path, outer string) bool {
	rest, below := strings.CutPrefix(path, outer)
	return below && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// nameOf returns a path as a string. An item of a set is identified by its value, which may be secret. So nameOf leaves out such an item
// and what follows it.
func nameOf(path fieldpath.Path) string {
	if i := slices.IndexFunc(path, func(e fieldpath.PathElement) bool { return e.Value != nil }); i >= 0 {
		path = path[:i]
	}
	return strings.TrimPrefix(path.String(), ".")
}
