package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// report counts the faults.
type report struct {
	times        map[string]int
	kills, total int
	length       time.Duration
}

func (r *report) add(isKill bool, what string) {
	if r.times == nil {
		r.times = map[string]int{}
	}
	r.times[what]++
	r.total++
	if isKill {
		r.kills++
	}
}

func (r *report) print(users *users) {
	fmt.Printf("\n%-60s %5s\n", "In "+r.length.Round(time.Second).String(), "times")
	for _, what := range slices.Sorted(maps.Keys(r.times)) {
		fmt.Printf("  %-58s %5d\n", what, r.times[what])
	}
	fmt.Printf("  %-58s %5d\n\n", "object created, changed, or deleted by a user", users.changes.Load())
}
