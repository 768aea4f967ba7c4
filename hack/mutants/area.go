package main

import (
	"path"
	"path/filepath"
	"slices"
)

// area is a part of the code in which changes are made, and the tests that should notice the changes.
type area struct {
	name   string
	folder string
	below  bool // the folders below folder belong to the area too
	count  int  // how many changes are tested

	explorations []suite
	others       []suite
}

// suite is a group of tests in one package.
type suite struct {
	module string // the folder of the module
	pkg    string // the folder of the package in the module
	part   part
	short  bool // with -short, explorations try only a sample of the faults, and tests that need a control plane are skipped
}

// part says which tests of a package belong to a suite.
type part int

const (
	everything   part = iota
	explorations      // the tests that call reconciletest.Explore
	others            // all other tests
)

// examples are the operators of the folder examples.
var examples = []string{"memcached", "app", "databaseuser", "eru", "cache"}

// areas returns all areas. The first suite of each area is the one that notices changes most often.
func areas() []area {
	all := []area{
		{
			name: "internal/owned", folder: "internal/owned", below: true, count: 15,
			explorations: append([]suite{{".", "ownedresources", explorations, true}}, exploredExamples("app", "cache", "databaseuser")...),
			others:       []suite{{".", "ownedresources", others, true}},
		},
		{
			name: "reconcile", folder: "reconcile", count: 12,
			explorations: append(exploredExamples("databaseuser", "memcached", "eru"), suite{".", "ownedresources", explorations, true}),
			others:       []suite{{".", "reconcile", everything, true}, {".", "ownedresources", others, true}},
		},
		{
			name: "finalizers", folder: "finalizers", count: 10,
			explorations: exploredExamples("databaseuser"),
			others:       []suite{{".", "finalizers", everything, true}, {".", "reconcile", everything, true}},
		},
	}
	for _, name := range examples {
		all = append(all, area{
			name: "examples/" + name, folder: "examples/" + name + "/controller", count: 20,
			explorations: exploredExamples(name),
			others:       []suite{{"examples", name + "/controller", others, false}, {"examples", name + "/test", everything, false}},
		})
	}
	return all
}

// othersOf returns the suites without explorations, for a change of a file. If the area has folders below its own, the tests in the file's
// package come first.
func (a *area) othersOf(root, file string) []suite {
	folder := path.Dir(file)
	if own, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go")); !a.below || len(own) == 0 { // cannot fail: the pattern is valid
		return a.others
	}
	return append([]suite{{".", folder, everything, true}}, a.others...)
}

// suites returns all suites of an area, each once.
func (s *sampled) suites(root string) []suite {
	all := slices.Clone(s.area.explorations)
	for _, m := range s.mutants {
		for _, one := range s.area.othersOf(root, m.File) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

func exploredExamples(names ...string) (all []suite) {
	for _, name := range names {
		all = append(all, suite{"examples", name + "/controller", explorations, true})
	}
	return all
}
