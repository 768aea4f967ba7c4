package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstabilities(t *testing.T) {
	const (
		order  = " has the same items in another order: if they come from a Go map, whose order is random, sort them"
		time   = " is the time of the pass: change it only together with something else"
		random = " is another value in each pass: it may be random, or a hash of a Go map, whose order is random"
	)
	tests := map[string]struct {
		reason     string
		was, is    any
		wantsLines []string
	}{
		"ListInAnotherOrder": {
			reason: "as from a Go map", was: object{"a": []any{"x", "y"}}, is: object{"a": []any{"y", "x"}},
			wantsLines: []string{"a" + order},
		},
		"ListOfObjects": {
			reason: "items are compared as a whole", was: object{"a": []any{object{"n": 1}, object{"n": 2}}}, is: object{"a": []any{object{"n": 2}, object{"n": 1}}},
			wantsLines: []string{"a" + order},
		},
		"OtherItems": {
			reason: "a list that changes", was: object{"a": []any{"x", "y"}}, is: object{"a": []any{"x", "z"}},
		},
		"JoinedText": {
			reason: "a text of the keys of a map", was: object{"a": "x=1,y=2"}, is: object{"a": "y=2,x=1"},
			wantsLines: []string{"a" + order},
		},
		"HashBesideAList": {
			reason: "the hash follows from the list", was: object{"a": []any{"x", "y"}, "hash": "d41d8cd98f"}, is: object{"a": []any{"y", "x"}, "hash": "7f3a5b21e0"},
			wantsLines: []string{"a" + order},
		},
		"Time": {
			reason: "an operator that writes when it last looked", was: object{"at": "2000-01-01T00:00:00Z"}, is: object{"at": "2000-01-01T00:00:02Z"},
			wantsLines: []string{"at" + time},
		},
		"Hash": {
			reason: "nothing else has changed", was: object{"hash": "d41d8cd98f"}, is: object{"hash": "7f3a5b21e0"},
			wantsLines: []string{"hash" + random},
		},
		"Counter": {
			reason: "most of the text stays", was: object{"a": "revision-0000012"}, is: object{"a": "revision-0000013"},
		},
		"Words": {
			reason: "a phase is no hash", was: object{"a": "Starting"}, is: object{"a": "Updating"},
		},
		"Number": {
			reason: "which counts up", was: object{"a": int64(1)}, is: object{"a": int64(2)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.wantsLines, instabilities(tc.was, tc.is)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
