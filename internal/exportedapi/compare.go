package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// change is a change of an exported identifier that may keep code written for the last release from compiling.
type change struct {
	identifier string // for example conditions.Set or reconcile/reconciletest.Env.RequestLog
	was        string
	is         string // the declaration now; "" if the identifier does not exist any more
}

// String returns the change in one line.
func (c change) String() string {
	if c.is == "" {
		return fmt.Sprintf("%s was %s and does not exist any more", c.identifier, c.was)
	}
	return fmt.Sprintf("%s was %s and is %s", c.identifier, c.was, c.is)
}

// incompatible returns the identifiers of the released API that the current API lacks or declares in another way. Additions are compatible,
// except to an interface that users implement. Such an interface is written in one line, so an addition to it is a changed declaration.
func incompatible(released, current []string) (changes []change) {
	declared := map[string]string{}
	for _, line := range current {
		identifier, declaration, _ := strings.Cut(line, " ")
		declared[identifier] = declaration
	}
	for _, line := range released {
		identifier, was, _ := strings.Cut(line, " ")
		is := declared[identifier]
		if is == was || pointerMethod+is == was {
			continue
		}
		changes = append(changes, change{identifier, was, is})
	}
	return changes
}

// check returns what is wrong with the changes since the last release: changes that were not accepted, accepted changes that were undone
// since, and changes that the changelog does not name.
func check(version string, changes []change, accepted []string, changelog string) (faults []string) {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
		if !slices.Contains(accepted, c.String()) {
			faults = append(faults, "incompatible change since "+version+": "+c.String())
		}
	}
	if len(faults) > 0 {
		return append(faults, "undo these changes, or describe them in CHANGELOG.md under Unreleased and run make api; see docs/releasing.md for "+
			"when they are allowed")
	}
	for _, line := range accepted {
		if !slices.Contains(lines, line) {
			faults = append(faults, "hack/api/changes.txt is out of date, run make api: it has "+line)
		}
	}
	for _, c := range changes {
		name := c.identifier[strings.LastIndexByte(c.identifier, '.')+1:]
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(changelog) {
			faults = append(faults, "CHANGELOG.md does not name "+c.identifier+" under Unreleased, which has changed incompatibly since "+version+
				": describe what users do about it")
		}
	}
	return faults
}
