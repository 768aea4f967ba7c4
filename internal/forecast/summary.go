package forecast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/preview"
)

// notExact lists what no plan shows exactly. All formats contain these texts.
var notExact = []string{
	"The plan does not try deletions, so a policy may still refuse one.",
	"A child that is built from another child is planned with the answer to a dry run of that one, which has neither a status nor an IP address. Random values will be others.",
	"The objects that children are built from can change until the operator runs.",
	"Status, conditions, finalizers, events and annotations of the owners are not in the plan.",
}

// notCompared explains why a plan may lack changes outside of the cluster.
const notCompared = "What is outside of the cluster was not asked: a step with ObserveInPlans asks it, and says what it would change."

// summary returns the first sentences of the report.
func (r *Report) summary() (lines []string) {
	for _, k := range r.kinds {
		lines = append(lines, k.String())
	}
	changes := r.changes()
	if len(changes) == 0 {
		return append(lines, r.quietLine())
	}
	if paths := r.commonPaths(changes); paths != "" {
		lines = append(lines, "All changes are in the same field: "+paths+".")
	}
	counted := map[string]int{}
	var order []string
	for _, g := range changes {
		line := g.change.Kind.Kind + " " + verbs[g.change.Action]
		if g.change.After != "" {
			line += ", later"
		}
		if len(g.change.Effects) > 0 {
			line += ": " + strings.Join(g.change.Effects, "; ")
		}
		if counted[line] == 0 {
			order = append(order, line)
		}
		counted[line] += g.count
	}
	for _, line := range order {
		lines = append(lines, fmt.Sprintf("%d × %s", counted[line], line))
	}
	lines = append(lines, r.dangers(changes))
	for _, g := range r.notMade() {
		lines = append(lines, fmt.Sprintf("%d × %s: see below", g.count, g.subject()))
	}
	return lines
}

// subject returns the beginning of a sentence about something that fails, waits or is not known.
func (g *group) subject() string {
	switch {
	case g.change.Kind.Kind == "":
		return g.owner + " is not known"
	case g.change.Waits != "":
		return g.change.Kind.Kind + " waits"
	}
	return g.change.Kind.Kind + " fails"
}

// verbs are the texts for the actions in sentences.
var verbs = map[string]string{
	Create: "is created", Apply: "is changed", Recreate: "is deleted and created again", Replace: "is replaced by one with larger volumes",
	Delete: "is deleted", Retain: "stays, without its owner reference",
}

func (k *ofKind) String() string {
	parts := []string{fmt.Sprintf("%d of %d change", k.changed, k.total)}
	for _, part := range []struct {
		n    int
		text string
	}{
		{k.unchanged, "%d are as desired"},
		{k.compared, "%d have something outside of the cluster that the plan did not compare"},
		{k.waits, "%d have a child that waits"},
		{k.skipped, "%d are skipped"},
		{k.failed, "%d have a child that fails"},
		{k.unknown, "%d are not known"},
		{k.total - k.looked, "%d were not looked at"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.n))
		}
	}
	return k.kind + ": " + strings.Join(parts, ", ") + "."
}

func (r *Report) quietLine() string {
	if r.HasFailures() {
		return "No change is known."
	}
	if r.HasCompared() {
		return "Nothing in the cluster would be changed."
	}
	return "Nothing would be changed."
}

// commonPaths returns the path of a field, if all changes have the action Apply and change only this field.
func (r *Report) commonPaths(changes []*group) string {
	paths := map[string]bool{}
	for _, g := range changes {
		if g.change.Action != Apply {
			return ""
		}
		for _, d := range g.change.Differences {
			paths[d.Path] = true
		}
	}
	if len(paths) != 1 {
		return ""
	}
	for path := range paths {
		return path
	}
	return ""
}

// dangers returns a sentence that says what is deleted and what data is lost.
func (r *Report) dangers(changes []*group) string {
	n := func(is func(c *preview.Change) bool) (n int) {
		for _, g := range changes {
			if is(&g.change) {
				n += g.count
			}
		}
		return n
	}
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{n(func(c *preview.Change) bool { return c.Action == Recreate }), "%d are deleted and created again"},
		{n(func(c *preview.Change) bool { return c.Action == Replace }), "%d are replaced by larger ones"},
		{n(func(c *preview.Change) bool { return c.Action == Delete && c.After == "" }), "%d are deleted"},
		{n(func(c *preview.Change) bool { return c.Action == Delete && c.After != "" }), "%d are deleted later"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.n))
		}
	}
	if len(parts) == 0 {
		return "No child is deleted."
	}
	line := "Of all children, " + strings.Join(parts, ", ")
	if lost := n(func(c *preview.Change) bool { return c.LosesData }); lost > 0 {
		line += fmt.Sprintf(": DATA IS LOST in %d of these", lost)
	}
	return line + ". What is not listed stays as it is."
}

// title returns the heading of a group.
func (g *group) title() string {
	title := fmt.Sprintf("%d × %s %s", g.count, g.change.Kind.Kind, verbs[g.change.Action])
	if g.change.After != "" {
		title += ", later"
	}
	if g.change.LosesData {
		title += " (DATA IS LOST)"
	}
	return title
}

// details returns the lines below a heading, except the fields.
func (g *group) details() (lines []string) {
	lines = append(lines, g.change.Effects...)
	if g.change.After != "" {
		lines = append(lines, "this waits until "+g.change.After)
	}
	if g.change.Note != "" {
		lines = append(lines, g.change.Note)
	}
	return lines
}

// fields returns the differences, one per line. If a whole object is created or deleted, there are none.
func (g *group) fields() (lines []string) {
	for _, d := range g.change.Differences {
		lines = append(lines, preview.Difference{Path: d.Path, Have: shortened(d.Have), Want: shortened(d.Want)}.String())
	}
	return lines
}

// longest is the largest number of characters of a value in texts for people. Longer values are cut.
const longest = 200

func shortened(value string) string {
	runes := []rune(value)
	if len(runes) <= longest {
		return value
	}
	return fmt.Sprintf("%s… (%d characters)", string(runes[:longest]), len(runes))
}

// shown returns a line that says which object of the group the details describe.
func (g *group) shown() string {
	line := fmt.Sprintf("%s %s of %s %s", g.change.Kind.Kind, NameOf(g.change.Name), g.owner, g.owners[0])
	if g.change.Name.Name == "" {
		line = fmt.Sprintf("%s %s", g.owner, g.owners[0])
	}
	if g.count == 1 {
		return line
	}
	line += " is shown; " + others(g)
	if g.differs {
		line += "; values differ from object to object"
	}
	return line
}

// others returns the names of the other owners of a group. If something is deleted, it returns more of them.
func others(g *group) string {
	most := 10
	if a := g.change.Action; a == Recreate || a == Delete {
		most = 100
	}
	rest := g.owners[1:]
	if len(rest) == 0 {
		return fmt.Sprintf("and %d more of it", g.count-1)
	}
	if len(rest) <= most {
		return "also " + strings.Join(rest, ", ")
	}
	most = min(most, 3)
	return fmt.Sprintf("also %s and %d more", strings.Join(rest[:most], ", "), len(rest)-most)
}

// limits returns sentences that say why the plan is not exact or not complete.
func (r *Report) limits() []string {
	lines := slices.Clone(r.LeftOut)
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if r.HasCompared() {
		lines = append(lines, notCompared)
	}
	return append(lines, notExact...)
}
