package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// blocks returns the parts of the page that a run fills in, by their names. It returns an error that names what was not
// measured.
func blocks(r *results) (map[string]string, error) {
	t := &tables{results: r, missing: map[string]bool{}}
	all := map[string]string{
		"run": t.run(), "goals": t.goals(), "steady": t.steady(allVariants), "pods": t.steady(podVariants),
		"convergence": t.convergence(), "requests": t.requests(), "memory": t.memory(), "firstpass": t.firstPass(), "restart": t.restart(), "services": t.services(), "lists": t.lists(),
		"compare":  t.packageTable("internal/compare", "Deployment"),
		"schedule": t.packageTable("schedule", `^Due/.*/(Year|Decades)$|^Parse$|^MayStart$`),
	}
	if len(t.missing) > 0 {
		names := make([]string, 0, len(t.missing))
		for name := range t.missing {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("the input has no results of %s", strings.Join(names, ", "))
	}
	return all, nil
}

// tables makes tables of results, and collects what is missing for them.
type tables struct {
	*results
	missing map[string]bool
}

func (t *tables) of(name string, objects int, variant, unit string) samples {
	values := t.results.of(name, objects, variant, unit)
	if len(values) == 0 {
		t.missing[fmt.Sprintf("%s of %s with %d objects, %s", unit, variant, objects, name)] = true
		return samples{math.NaN()}
	}
	return values
}

func (t *tables) setting(name string) string {
	value := t.config[name]
	if value == "" {
		t.missing[name] = true
	}
	return value
}

// run describes the machine and the programs.
func (t *tables) run() string {
	return fmt.Sprintf("Measured on %s with Go %s, kube-apiserver %s and etcd %s, all on %s cores of one machine (%s).\n"+
		"Every value is the median of %d runs, which were taken in turns; the lowest and the highest run are in brackets.\n",
		t.setting("date"), t.setting("go"), t.setting("kube-apiserver"), t.setting("etcd"), t.setting("processors"), t.setting("cpu"),
		len(t.of("SteadyState", 100, opblocks, "ns/op")))
}

func (t *tables) steady(variants []string) string {
	rows := [][]string{{"", "100 objects", "1,000 objects", "10,000 objects", "bytes", "allocations", "requests"}}
	for _, variant := range variants {
		cells := []string{labels[variant]}
		for _, size := range steadySizes {
			cells = append(cells, duration(t.of("SteadyState", size, variant, "ns/op")))
		}
		for _, unit := range []string{"B/op", "allocs/op", "requests/op"} {
			cells = append(cells, number(t.of("SteadyState", 1_000, variant, unit).median()))
		}
		rows = append(rows, cells)
	}
	return table(rows)
}

func (t *tables) convergence() string {
	rows := [][]string{{"", "1,000 objects", "10,000 objects", "a POST", "a status write"}}
	for _, variant := range convergenceVariants {
		cells := []string{labels[variant], duration(t.of("Convergence", 1_000, variant, "s").times(1e9)), ""}
		for _, request := range []string{"ms/POST", "ms/status"} {
			if request == "ms/POST" && variant == serverSideApply { // it creates by PATCH
				cells = append(cells, "")
				continue
			}
			cells = append(cells, duration(t.of("Convergence", 1_000, variant, request).times(1e6)))
		}
		if variant == withoutEvents || slices.Contains(mainVariants, variant) {
			cells[2] = duration(t.of("Convergence", 10_000, variant, "s").times(1e9))
		}
		rows = append(rows, cells)
	}
	return table(rows)
}

func (t *tables) requests() string {
	rows := [][]string{{"", "POST", "PUT and PATCH", "status", "events", "restart"}}
	for _, variant := range allVariants {
		cells := []string{labels[variant]}
		for _, unit := range []string{"POST/object", "PUT+PATCH/object", "status/object", "events/object"} {
			cells = append(cells, brackets(t.of("Convergence", 1_000, variant, unit), number))
		}
		rows = append(rows, append(cells, brackets(t.of("Convergence", 1_000, variant, "restart-requests").times(1e-3), number)))
	}
	return table(rows)
}

func (t *tables) memory() string {
	rows := [][]string{{"", "live heap", "an object", "resident memory", "highest resident memory"}}
	for _, variant := range mainVariants {
		of := func(unit, shown string) string {
			return brackets(t.of("Convergence", 10_000, variant, unit), func(v float64) string { return number(v) + " " + shown })
		}
		rows = append(rows, []string{labels[variant], of("heap-MiB", "MiB"), of("heap-KiB/object", "KiB"), of("resident-MiB", "MiB"), of("peak-MiB", "MiB")})
	}
	return table(rows)
}

func (t *tables) firstPass() string {
	rows := [][]string{{"", "until all have converged", "by the object"}}
	for _, variant := range firstPassVariants {
		took := t.of("FirstPass", firstPassSize, variant, "s")
		rows = append(rows, []string{labels[variant], duration(took.times(1e9)), duration(took.times(1e9 / firstPassSize))})
	}
	return table(rows)
}

func (t *tables) restart() string {
	rows := [][]string{{"", "processor time", "every object is reconciled after", "an object in the heap", "highest resident memory"}}
	for _, variant := range []string{opblocks, handWritten} {
		of := func(unit string) samples { return t.of("Scale", scaleSize, variant, unit) }
		with := func(unit, shown string) string {
			return brackets(of(unit), func(v float64) string { return number(v) + " " + shown })
		}
		rows = append(rows, []string{
			labels[variant], duration(of("start-cpu-s").times(1e9)), duration(of("start-s").times(1e9)), with("KiB/object", "KiB"), with("start-peak-MiB", "MiB"),
		})
	}
	return table(rows)
}

func (t *tables) services() string {
	rows := [][]string{{"Services with an address", "time to create one with an address", "time to create a headless one"}}
	for _, size := range steadySizes {
		rows = append(rows, []string{
			thousands(size), duration(t.of("CreateService", size, "with-address", "ns/op")), duration(t.of("CreateService", size, "headless", "ns/op")),
		})
	}
	return table(rows)
}

func (t *tables) lists() string {
	rows := [][]string{{"", "all are created", "a pass with nothing to do, by the child"}}
	for _, size := range []int{100, 1_000} {
		for _, form := range []struct{ variant, label string }{
			{"one-owner", "one owner with %s children"}, {"one-child-each", "%s owners with one child each"},
		} {
			rows = append(rows, []string{
				fmt.Sprintf(form.label, thousands(size)),
				duration(t.of("List", size, form.variant, "ms/convergence").times(1e6)),
				duration(t.of("List", size, form.variant, "ns/quiet-child")),
			})
		}
	}
	return table(rows)
}

// packageTable has the benchmarks of a package whose name matches a pattern.
func (t *tables) packageTable(pkg, pattern string) string {
	rows := [][]string{{"", "time", "allocations"}}
	for _, b := range t.benchmarksOf(pkg, pattern) {
		rows = append(rows, []string{"`" + b.name + "`", duration(b.values["ns/op"]), number(b.values["allocs/op"].median())})
	}
	return table(rows)
}

func (t *tables) benchmarksOf(pkg, pattern string) []*benchmark {
	found := t.named(pkg, regexp.MustCompile(pattern))
	if len(found) == 0 {
		t.missing["benchmarks of "+pkg] = true
	}
	return found
}

// table writes rows of cells in Markdown. The first row is the heading.
func table(rows [][]string) string {
	var out strings.Builder
	for i, cells := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintln(&out, strings.Repeat("| --- ", len(cells))+"|")
		}
	}
	return out.String()
}

// brackets returns the median, with the range in brackets if it is one.
func brackets(s samples, show func(float64) string) string {
	middle, lowest, highest := show(s.median()), show(slices.Min(s)), show(slices.Max(s))
	if lowest == highest {
		return middle
	}
	unit := ""
	if value, found := strings.CutSuffix(highest, lastWord(lowest)); found && value != highest && strings.Contains(highest, " ") {
		unit = lastWord(lowest)
	}
	return fmt.Sprintf("%s (%s–%s)", middle, strings.TrimSuffix(lowest, unit), strings.TrimSuffix(highest, unit))
}

// lastWord returns the last word of a text with the space before it.
func lastWord(text string) string {
	if i := strings.LastIndex(text, " "); i >= 0 {
		return text[i:]
	}
	return ""
}

// duration shows nanoseconds.
func duration(ns samples) string {
	factor, unit := 1.0, "ns"
	switch median := ns.median(); {
	case median >= 1e9:
		factor, unit = 1e-9, "s"
	case median >= 1e6:
		factor, unit = 1e-6, "ms"
	case median >= 1e3:
		factor, unit = 1e-3, "µs"
	}
	return brackets(ns.times(factor), func(v float64) string { return number(v) + " " + unit })
}

// number shows three digits, or all before the decimal point.
func number(v float64) string {
	if v >= 1_000 {
		return thousands(int(math.Round(v)))
	}
	if v >= 99.95 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
