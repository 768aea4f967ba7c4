package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIncompatible(t *testing.T) {
	tests := map[string]struct {
		reason   string
		old, new string
		want     []string
	}{
		"Same":    {"nothing has changed", `func Add(name string) {}`, `func Add(item string) {}`, nil},
		"Added":   {"code of the last release does not use what is new", `type Item struct{}`, "type Item struct { Name string }\nfunc (Item) Add() {}", nil},
		"Removed": {"code that calls it does not compile", `func Add() {}`, ``, []string{"cart.Add was func() and does not exist any more"}},
		"Changed": {"calls and assignments of the function may not compile", `func Add() {}`, `func Add(names ...string) {}`,
			[]string{"cart.Add was func() and is func(...string)"}},
		"FieldRemoved": {"composite literals name it", `type Item struct { Name string }`, `type Item struct{}`,
			[]string{"cart.Item.Name was field string and does not exist any more"}},
		"FieldTag": {"custom resources have the field by this name", "type Item struct { Name string `json:\"name\"` }", "type Item struct { Name string `json:\"title\"` }",
			[]string{`cart.Item.Name was field string "json:\"name\"" and is field string "json:\"title\""`}},
		"MethodOfValue":   {"the pointer has the method as before", "type Item struct{}\nfunc (*Item) Add() {}", "type Item struct{}\nfunc (Item) Add() {}", nil},
		"MethodOfPointer": {"the value has lost the method", "type Item struct{}\nfunc (Item) Add() {}", "type Item struct{}\nfunc (*Item) Add() {}", []string{"cart.Item.Add was method () and is pointer method ()"}},
		"InterfaceGrows": {"users' types do not implement it any more", `type Named interface { Name() string }`, `type Named interface { Name() string; Size() int }`,
			[]string{"cart.Named was type interface{ Name() string } and is type interface{ Name() string; Size() int }"}},
		"ClosedInterfaceGrows": {"no type of users implements it", `type Named interface { Name() string; named() }`, `type Named interface { Name() string; Size() int; named() }`, nil},
		"Value":                {"users compare it with what they read in a status", `const Reason = "Empty"`, `const Reason = "None"`, []string{`cart.Reason was const untyped string = "Empty" and is const untyped string = "None"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range incompatible(describeSource(t, tc.old), describeSource(t, tc.new)) {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	removed := change{"cart.Item.Name", "field string", ""}
	tests := map[string]struct {
		reason    string
		changes   []change
		accepted  []string
		changelog string
		want      []string
	}{
		"NoChange": {"additions are not reported", nil, nil, "", nil},
		"NotAccepted": {"one sentence for each change, and one about what to do", []change{removed}, nil, "`Item.Name`", []string{
			"incompatible change since v0.1.0: cart.Item.Name was field string and does not exist any more",
			"undo these changes, or describe them in CHANGELOG.md under Unreleased and run make api; see docs/releasing.md for when they are allowed",
		}},
		"Accepted": {"recorded and described", []change{removed}, []string{removed.String()}, "`Item.Name` is gone: use `Title`", nil},
		"Undone": {"the record would hide the same change later", nil, []string{removed.String()}, "",
			[]string{"hack/api/changes.txt is out of date, run make api: it has cart.Item.Name was field string and does not exist any more"}},
		"NotDescribed": {"a name that only contains it is another one", []change{removed}, []string{removed.String()}, "`Item.Names`",
			[]string{"CHANGELOG.md does not name cart.Item.Name under Unreleased, which has changed incompatibly since v0.1.0: describe what users do about it"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check("v0.1.0", tc.changes, tc.accepted, tc.changelog)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
