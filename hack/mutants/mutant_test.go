package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each kind of change is made where it makes sense. The changed file differs from the original only by this change.
func TestMutantsOf(t *testing.T) {
	lines := map[string]struct {
		reason string
		body   string
		want   []string // the kind, and the code with the change
	}{
		"Condition":  {"a condition is negated as a whole", "if a { g() }", []string{"a negated condition: if !(a) { g() }", "a call left out: if a {  }"}},
		"Comparison": {"a boundary is moved", "return x < y", []string{"another operator: return x <= y"}},
		"Logic":      {"and becomes or", "return a && b", []string{"another operator: return a || b"}},
		"Text":       {"texts cannot be subtracted", `return "a" + s`, nil},
		"Error":      {"an error of the name err that is returned last", "return 1, err", []string{"another number: return 2, err", "an error not returned: return 1, nil"}},
		"Truth":      {"another result", "return true", []string{"another result: return false"}},
		"Assignment": {"the value that was there stays", "x.y = z", []string{"an assignment left out: "}},
		"Definition": {"without it nothing compiles", "x := z; _ = x", nil},
		"Option":     {"the last argument, if it is a call", "f(a, with(b))", []string{"a call left out: ", "an option left out: f(a)"}},
		"Chain":      {"a method in a chain", "return build(a).With(b)", []string{"an option left out: return build(a)"}},
		"Branch":     {"one without a label", "for { break }", []string{"another branch: for { continue }"}},
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			before, after := "package p\n\nfunc (t *T[K]) f() {\n", "\n}\n"
			content := []byte(before + line.body + after)
			if err := os.WriteFile(filepath.Join(folder, "p.go"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			made, err := mutantsOf(folder, ".")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range made {
				changed := string(m.apply(content))
				got = append(got, m.Kind+": "+strings.TrimSuffix(strings.TrimPrefix(changed, before), after))
				if m.Function != "T.f" || m.Line != 4 {
					t.Errorf("the function is %s, in line %d", m.Function, m.Line)
				}
			}
			slices.Sort(got)
			slices.Sort(line.want)
			if !slices.Equal(got, line.want) {
				t.Errorf("%s: got %q, want %q", line.reason, got, line.want)
			}
		})
	}
}

// The key of a change, by which its result is found, stays the same if other functions change. If its own function changes, the key
// changes.
func TestKeys(t *testing.T) {
	keys := func(content string) (all []string) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "p.go"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := mutantsOf(folder, ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made {
			all = append(all, m.Key)
		}
		return all
	}
	f, g := "func f() bool { return a == b && c == d }\n", "func g() { h() }\n"
	was := keys("package p\n" + f)
	if len(was) != 3 || was[0] == was[1] || was[1] == was[2] {
		t.Fatalf("each change has a key of its own: %v", was)
	}
	if is := keys("package p\n" + g + f); !slices.Equal(is[1:], was) {
		t.Errorf("another function changes the keys: %v and %v", was, is)
	}
	if is := keys("package p\n" + strings.ReplaceAll(f, "d", "e")); slices.ContainsFunc(is, func(key string) bool { return slices.Contains(was, key) }) {
		t.Errorf("a change of the function changes no key: %v and %v", was, is)
	}
}

// A test may call reconciletest.Explore by helper functions.
func TestExplorationsIn(t *testing.T) {
	folder := t.TempDir()
	content := `package p
func TestA(t *testing.T) { explore(t) }
func explore(t *testing.T) { reconciletest.Explore(t, s); explore(t) }
func TestB(t *testing.T) { t.Run("x", func(t *testing.T) { reconciletest.ExploreQuietly(t, s) }) }
func TestC(t *testing.T) { reconciletest.Run(t, s, nil) }
`
	if err := os.WriteFile(filepath.Join(folder, "p_test.go"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := explorationsIn(folder)
	if err != nil || !slices.Equal(names, []string{"TestA", "TestB"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if _, err := explorationsIn(t.TempDir()); err == nil {
		t.Error("a package without an exploration has none to run alone")
	}
}

// The tests of the changed package come first, since they notice the most.
func TestOthersOf(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"internal/owned/plan/plan_test.go", "internal/owned/write/write.go"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte("package p\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	users := suite{".", "ownedresources", others, true}
	for file, want := range map[string][]suite{
		"internal/owned/plan/plan.go":   {{".", "internal/owned/plan", everything, true}, users},
		"internal/owned/write/write.go": {users}, // a folder without tests
	} {
		below := area{below: true, others: []suite{users}}
		if got := below.othersOf(root, file); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
		if got := (&area{others: []suite{users}}).othersOf(root, file); !slices.Equal(got, []suite{users}) {
			t.Errorf("%s: got %v, and the area names its suites itself", file, got)
		}
	}
}

// The sample depends only on the seed.
func TestSample(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	first := func(seed uint64) (keys []string) {
		sample, err := sampleOf(root, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sample {
			if len(s.mutants) < s.area.count {
				t.Errorf("%s has %d changes, and %d are wanted", s.area.name, len(s.mutants), s.area.count)
			}
			keys = append(keys, s.mutants[0].Key)
		}
		return keys
	}
	if !slices.Equal(first(1), first(1)) || slices.Equal(first(1), first(2)) {
		t.Error("the sample does not follow from the seed")
	}
}

// The page lists a survivor with its reason, and does not count changes that do not compile.
func TestPage(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"docs", "hack/mutants"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	known, err := readResults(filepath.Join(root, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	of := func(key string) mutant {
		return mutant{Key: key, File: "finalizers/a.go", Function: "f", Kind: "another number", Before: "1 | 2"}
	}
	for _, r := range []result{
		{mutant: of("a"), Compiles: true, Explorations: "TestX"}, {mutant: of("b"), Compiles: true}, {mutant: of("c")},
	} {
		if err := known.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, reasonsFile), []byte("# reasons\n\nb it changes nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := readResults(filepath.Join(root, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := writePage(root, []sampled{{area: area{name: "finalizers", count: 5}, mutants: []mutant{of("a"), of("b"), of("c")}}}, again); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| finalizers | 2 of 5 so far | 1 (50 %) | 0 (0 %) | 1 (50 %) |\n", "| all | 2 of 5 so far | 1 (50 %) | 0 (0 %) | 1 (50 %) |\n",
		"| [a.go:0](../finalizers/a.go) | f | another number: `1 ∣ 2` | it changes nothing |\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
