package reconciletest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// AssertRole fails the test unless the roles in a YAML file, such as config/rbac/role.yaml of controller-gen, fit what the
// operator asked for in the runs of the reports: they must grant every right, and nothing that was not needed. It names what
// is missing, with the marker of controller-gen to write, and what is not used. The file is relative to the test's directory.
//
// The rights of all reports are added up, so an operator with several scenarios needs the report of each. If the operator needs a verb that
// no scenario uses, name it in unexplored, such as "delete pods" or "get deployments.apps/scale". It is an error if the roles do not grant
// it, or if a scenario uses it.
//
// If an exploration was a sample, as with -short, only what is missing is judged, and the test's log says so. If an exploration was
// done [Options.WithoutFaults], AssertRole also reports what no run without faults needs. It cannot see what only faults need: often
// get, to read an object again after a conflict, and delete, to remove what was created twice. Name these as unexplored there, or
// explore all faults.
//
// A right that is [Right.Enforced] counts as used, and is never missing.
//
// A ClusterRole grants its rules in all namespaces, and a Role in its namespace. Rules for what the manager itself does are
// not judged: leases and events of the leader election, and the reviews by which the metrics server authenticates. Neither are
// rules for nonResourceURLs, nor the verbs escalate, bind and impersonate. A rule with "*" is reported as unused, since nobody
// needs all verbs or resources.
func AssertRole(t testing.TB, file string, reports []*Report, unexplored ...string) {
	t.Helper()
	grants, err := readRoles(file)
	if err != nil {
		t.Errorf("role: %v", err)
		return
	}
	if judgementOf(reports) == onlyMissing {
		t.Logf("%s: only missing rights were judged, and not unused ones, since not all faults were tried: run it without -short, Limit and Budget", file)
	}
	if text := compareRole(grants, reports, unexplored); text != "" {
		t.Errorf("%s does not fit what the operator asked for:\n%s", file, text)
	}
}

// judgement is how a report calls the rights that a role grants and that no run has used.
type judgement string

const (
	onlyMissing     judgement = ""        // no unused right is reported: a run that was left out may need it
	unused          judgement = "unused:" // all faults were tried, and no run needs the rights
	unusedFaultless judgement = "unused without faults:"
)

// advice says what to do about a right that no run has used.
func (j judgement) advice() string {
	if j == unusedFaultless {
		return "a fault may need it: explore all faults once; if none does, remove it from its marker, add an action that needs it, or name it as unexplored"
	}
	return "remove it from its marker, add an action that needs it, or name it as unexplored"
}

// judgementOf returns what can be said of unused rights.
func judgementOf(reports []*Report) judgement {
	result := unused
	for _, r := range reports {
		switch {
		case r.isComplete():
		case r.faultless && r.Singles > 0 && r.Unfinished == nil:
			result = unusedFaultless
		default:
			return onlyMissing
		}
	}
	return result
}

// grant is one verb on one resource that a role grants.
type grant struct {
	verb, group, resource string
	names                 []string // empty: all
	namespace             string   // the namespace of the Role; "" for a ClusterRole
}

func (g *grant) String() string { return g.verb + " " + resourceName(g.group, g.resource) }

// readRoles returns what the roles in a YAML file grant. It returns an error if the file has no role.
func readRoles(file string) ([]grant, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []grant
	found := false
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF) && !found:
			return nil, fmt.Errorf("%s has neither a ClusterRole nor a Role: name the file that controller-gen generates", file)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !strings.HasPrefix(role.APIVersion, rbacv1.GroupName+"/") || role.Kind != "Role" && role.Kind != "ClusterRole" {
			continue
		}
		found = true
		for i := range role.Rules {
			all = append(all, grantsOf(&role.Rules[i], role.Namespace)...)
		}
	}
}

func grantsOf(rule *rbacv1.PolicyRule, namespace string) (all []grant) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, grant{verb, group, resource, rule.ResourceNames, namespace})
			}
		}
	}
	return all
}

// covers reports whether the grant allows what was asked for, as the API server's RBAC authorizer decides it.
func (g *grant) covers(r *Right) bool {
	return (g.verb == r.Verb || g.verb == rbacv1.VerbAll) &&
		(g.group == r.Group || g.group == rbacv1.APIGroupAll) &&
		(g.resource == r.Resource || g.resource == rbacv1.ResourceAll || g.coversSubresource(r.Resource)) &&
		(len(g.names) == 0 || slices.Contains(g.names, r.Name)) &&
		(g.namespace == "" || g.namespace == r.Namespace)
}

// coversSubresource reports whether the grant is for that subresource of all resources, such as "*/scale".
func (g *grant) coversSubresource(resource string) bool {
	_, subresource, has := strings.Cut(resource, "/")
	return has && g.resource == "*/"+subresource
}

func (g *grant) hasWildcard() bool {
	return g.verb == rbacv1.VerbAll || g.group == rbacv1.APIGroupAll || strings.Contains(g.resource, rbacv1.ResourceAll)
}

// isOfManager reports whether the grant is for what a manager does beside the operator's requests, which no run shows.
func (g *grant) isOfManager() bool {
	switch {
	case slices.Contains([]string{"escalate", "bind", "impersonate"}, g.verb):
		return true
	case g.resource == "leases":
		return g.group == "coordination.k8s.io"
	case g.resource == "events":
		return g.namespace != "" && (g.group == "" || g.group == "events.k8s.io")
	}
	return g.resource == "tokenreviews" || g.resource == "subjectaccessreviews"
}

// compareRole returns which rights are not granted, and which grants are not used. It returns "" if the role fits.
func compareRole(grants []grant, reports []*Report, unexplored []string) string {
	var b strings.Builder
	asked := map[Right]string{}
	for _, report := range reports {
		for _, right := range report.Rights {
			if _, known := asked[right]; !known {
				asked[right] = report.requestOf[right]
			}
		}
	}
	writeMissing(&b, grants, asked)
	if judged := judgementOf(reports); judged != onlyMissing {
		writeUnused(&b, grants, asked, unexplored, judged)
	}
	return b.String()
}

func writeMissing(b *strings.Builder, grants []grant, asked map[Right]string) {
	type rule struct{ group, resource string }
	verbs, requests := map[rule][]string{}, map[rule][]string{}
	for right, request := range asked {
		if right.Enforced || slices.ContainsFunc(grants, func(g grant) bool { return g.covers(&right) }) {
			continue
		}
		of := rule{right.Group, right.Resource}
		verbs[of] = append(verbs[of], right.Verb)
		requests[of] = append(requests[of], fmt.Sprintf("%s (%s)", right, request))
	}
	rules := slices.SortedFunc(maps.Keys(verbs), func(a, b rule) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource))
	})
	for _, of := range rules {
		slices.Sort(verbs[of])
		slices.Sort(requests[of])
		for _, request := range requests[of][:min(len(requests[of]), shownRequests)] {
			fmt.Fprintf(b, "  missing: %s\n", request)
		}
		if n := len(requests[of]) - shownRequests; n > 0 {
			fmt.Fprintf(b, "  missing: %d more of %s\n", n, resourceName(of.group, of.resource))
		}
		fmt.Fprintf(b, "    write %s\n", marker(of.group, of.resource, "", slices.Compact(verbs[of])))
	}
}

// shownRequests is the largest number of requests that are named for one missing rule.
const shownRequests = 4

func writeUnused(b *strings.Builder, grants []grant, asked map[Right]string, unexplored []string, judged judgement) {
	left := slices.Clone(unexplored)
	for i := range grants {
		g := &grants[i]
		if g.isOfManager() {
			continue
		}
		used := false
		for right := range asked {
			used = used || g.covers(&right)
		}
		at := slices.Index(left, g.String())
		switch {
		case used && at >= 0:
			fmt.Fprintf(b, "  %s is used: do not name it as unexplored\n", g)
		case used && g.hasWildcard():
			fmt.Fprintf(b, "  too wide: %s%s; name the verbs and the resources\n", g, g.where())
		case !used && at < 0:
			fmt.Fprintf(b, "  %s %s%s; %s\n", judged, g, g.where(), judged.advice())
		}
		if at >= 0 {
			left = slices.Delete(left, at, at+1)
		}
	}
	for _, text := range left {
		fmt.Fprintf(b, "  %s is named as unexplored, but no rule grants it\n", text)
	}
}

// where returns the namespace and the names to which the grant is limited.
func (g *grant) where() (text string) {
	if g.namespace != "" {
		text += " in namespace " + g.namespace
	}
	if len(g.names) > 0 {
		text += " of " + strings.Join(g.names, ", ")
	}
	return text
}
