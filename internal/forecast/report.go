package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/preview"
)

// Report groups what would be done for many owners. For each group it keeps one change and the names of the owners. So its memory does not
// grow with the size of the objects.
type Report struct {
	kinds  []*ofKind
	groups map[string]*group
	order  []*group // the groups in the order in which they were found
	// LeftOut names the steps that the plan does not cover, and the other parts of the operator that did not run.
	LeftOut []string
	// Ended is the reason if the plan ended before all objects were looked at. It is empty if the plan is complete.
	Ended string
}

// ofKind counts the owners of one kind.
type ofKind struct {
	kind                                                                         string
	total, looked, changed, unchanged, failed, unknown, waits, skipped, compared int
}

// group is a group of equal changes: the same action on the same fields of the same kind, with the same effects.
type group struct {
	owner   string         // the kind of the owners
	change  preview.Change // the first change
	differs bool           // the changes of the group do not all have the same values
	failure string         // for changes that would not be made: the error, or what they wait for
	skipped bool
	count   int
	owners  []string
}

// Expect adds n to the number of owners of a kind that the plan is going to look at.
func (r *Report) Expect(kind string, n int) { r.of(kind).total += n }

func (r *Report) of(kind string) *ofKind {
	for _, k := range r.kinds {
		if k.kind == kind {
			return k
		}
	}
	k := &ofKind{kind: kind}
	r.kinds = append(r.kinds, k)
	return k
}

// Add adds what would be done for one owner.
func (r *Report) Add(o Object) {
	k := r.of(o.Kind.Kind)
	k.looked++
	switch {
	case o.Err != nil:
		k.unknown++
		r.add(o, group{failure: oneLine(o.Err.Error())})
		return
	case o.Skipped != "":
		k.skipped++
		r.add(o, group{failure: o.Skipped, skipped: true})
		return
	}
	var changed, failed, waits, compared bool
	for _, c := range o.Changes {
		switch {
		case c.Err != nil:
			failed = true
			r.add(o, group{change: c, failure: oneLine(c.Err.Error())})
		case c.Waits != "":
			waits = true
			r.add(o, group{change: c, failure: oneLine(c.Waits)})
		case c.Action == Compare:
			compared = true
		case Changes(&c):
			changed = true
			r.add(o, group{change: c})
		}
	}
	k.changed += count(changed)
	k.failed += count(failed)
	k.waits += count(waits && !failed)
	k.compared += count(compared && !changed && !failed && !waits)
	k.unchanged += count(!changed && !failed && !waits && !compared)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// add adds a change to its group.
func (r *Report) add(o Object, g group) {
	g.owner = o.Kind.Kind
	key := g.key(o)
	known := r.groups[key]
	if known == nil {
		if r.groups == nil {
			r.groups = map[string]*group{}
		}
		known = &g
		r.groups[key], r.order = known, append(r.order, known)
	}
	known.count++
	known.differs = known.differs || !slices.Equal(known.change.Differences, g.change.Differences)
	if name := NameOf(o.Name); len(known.owners) == 0 || known.owners[len(known.owners)-1] != name {
		known.owners = append(known.owners, name)
	}
}

// key returns a string that is the same for all changes of a group. Errors name the object, so key removes the names from them.
func (g *group) key(o Object) string {
	paths := make([]string, len(g.change.Differences))
	for i, d := range g.change.Differences {
		paths[i] = d.Path
	}
	failure := g.failure
	for _, name := range []string{NameOf(g.change.Name), g.change.Name.Name, NameOf(o.Name), o.Name.Name} {
		if name != "" {
			failure = strings.ReplaceAll(failure, name, "…")
		}
	}
	return fmt.Sprintf("%q", []string{
		g.owner, g.change.Kind.String(), g.change.Action, strings.Join(paths, " "), strings.Join(g.change.Effects, " "), failure,
		g.change.Note, fmt.Sprint(g.change.After != "", g.change.LosesData, g.skipped),
	})
}

// HasChanges reports whether something would be done for an owner.
func (r *Report) HasChanges() bool {
	return slices.ContainsFunc(r.kinds, func(k *ofKind) bool { return k.changed > 0 })
}

// HasFailures reports whether a reconcile would fail for an owner, or it is not known what it would do.
func (r *Report) HasFailures() bool {
	return r.Ended != "" || slices.ContainsFunc(r.kinds, func(k *ofKind) bool { return k.failed+k.unknown > 0 })
}

// HasCompared reports whether there are objects that only the running operator compares.
func (r *Report) HasCompared() bool {
	return slices.ContainsFunc(r.kinds, func(k *ofKind) bool { return k.compared > 0 })
}

// changes returns the groups of changes that would be made: first the changes that lose data, then by action, and the largest groups first.
func (r *Report) changes() []*group {
	return r.sorted(func(g *group) bool { return g.failure == "" })
}

// notMade returns the groups of changes that would not be made.
func (r *Report) notMade() []*group {
	return r.sorted(func(g *group) bool { return g.failure != "" && !g.skipped })
}

// skipped returns the groups of owners for which nothing would be done.
func (r *Report) skipped() []*group {
	return r.sorted(func(g *group) bool { return g.skipped })
}

// severity is the position of an action in the report. The lowest number comes first.
var severity = map[string]int{Recreate: 1, Delete: 2, Replace: 3, Apply: 4, Create: 5, Retain: 6}

func (r *Report) sorted(is func(*group) bool) (all []*group) {
	for _, g := range r.order {
		if is(g) {
			all = append(all, g)
		}
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(
			count(b.change.LosesData)-count(a.change.LosesData), severity[a.change.Action]-severity[b.change.Action], b.count-a.count,
		)
	})
	return all
}

// oneLine returns a text without control characters, because a terminal would interpret them.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }), " ")
}
