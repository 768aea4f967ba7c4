package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// answer is what a read of a thing shows: its fields, or "none".
func answer(t Thing[string], err error) string {
	if StatusOf(err) == http.StatusNotFound {
		return "none"
	}
	return t.Fields
}

// TestPast checks when a read may show an old state, and what it then shows.
func TestPast(t *testing.T) {
	create := func(a *API[string]) { _, _ = a.Create(t.Context(), Thing[string]{Name: "ann", Fields: "new"}) }
	update := func(a *API[string]) { _ = a.Update(t.Context(), Thing[string]{Name: "ann", Fields: "new"}) }
	remove := func(a *API[string]) { _ = a.Delete(t.Context(), "ann") }
	exists := []Thing[string]{{Name: "ann", Fields: "old"}}
	for name, tc := range map[string]struct {
		reason    string
		existing  []Thing[string]
		write     func(a *API[string])
		wait      time.Duration
		want, now string
		has       bool
	}{
		"Created":  {"it is not found right after its creation", nil, create, 0, "none", "new", true},
		"Updated":  {"it has its former fields", exists, update, 0, "old", "new", true},
		"Deleted":  {"it is still found", exists, remove, 0, "old", "none", true},
		"InTime":   {"the API may be behind for a while", exists, update, 9 * time.Second, "old", "new", true},
		"Late":     {"it becomes consistent", exists, update, 10 * time.Second, "new", "new", false},
		"NoWrite":  {"what was there from the beginning is shown", exists, func(*API[string]) {}, 0, "old", "old", false},
		"NoChange": {"an update that changes nothing is not a write", []Thing[string]{{Name: "ann", Fields: "new"}}, update, 0, "new", "new", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &API[string]{Existing: tc.existing}
				a.State() // the first call creates the things that exist at the beginning
				time.Sleep(time.Second)
				tc.write(a)
				time.Sleep(tc.wait)
				behind := outside.NewContext(t.Context(), &outside.Call{Past: true})
				if got := answer(a.Get(behind, "ann")); got != tc.want {
					t.Errorf("%s: a read that is behind shows %s, want %s", tc.reason, got, tc.want)
				}
				if all, _ := a.List(behind); len(all) > 0 && all[0].Fields != tc.want || len(all) == 0 && tc.want != "none" {
					t.Errorf("%s: a list that is behind shows %v, want %s", tc.reason, all, tc.want)
				}
				if got := answer(a.Get(t.Context(), "ann")); got != tc.now {
					t.Errorf("the next read shows %s, want %s", got, tc.now)
				}
				if got := a.store().hasPast("ann"); got != tc.has {
					t.Errorf("%s: hasPast is %v", tc.reason, got)
				}
			})
		})
	}
}

// TestAnswers checks the statuses of the answers, and which things exist afterwards.
func TestAnswers(t *testing.T) {
	ann := Thing[string]{Name: "ann", Owner: "first", Fields: "old", Token: "t1"}
	for name, tc := range map[string]struct {
		reason   string
		givesIDs bool
		do       func(ctx context.Context, a *API[string], first Thing[string]) error
		status   int
		want     []string // name, owner and fields of the things that exist afterwards
	}{
		"NameIsTaken": {"a second creation of a name is refused", false, func(ctx context.Context, a *API[string], _ Thing[string]) error {
			_, err := a.Create(ctx, Thing[string]{Name: "ann"})
			return err
		}, http.StatusConflict, []string{"ann first old"}},
		"SameToken": {"a second creation with a token creates nothing", true, func(ctx context.Context, a *API[string], first Thing[string]) error {
			again, err := a.Create(ctx, ann)
			if again.ID != first.ID {
				t.Errorf("the ID is %s, want %s", again.ID, first.ID)
			}
			return err
		}, 0, []string{"ann first old"}},
		"SameName": {"with IDs, a name can occur twice", true, func(ctx context.Context, a *API[string], first Thing[string]) error {
			again, err := a.Create(ctx, Thing[string]{Name: "ann", Owner: "second"})
			if again.ID == first.ID {
				t.Errorf("both have the ID %s", first.ID)
			}
			return err
		}, 0, []string{"ann first old", "ann second "}},
		"Update": {"an owner that is not given stays", false, func(ctx context.Context, a *API[string], _ Thing[string]) error {
			return a.Update(ctx, Thing[string]{Name: "ann", Fields: "new"})
		}, 0, []string{"ann first new"}},
		"UpdateOfAVersion": {"a version that was replaced is refused", false, func(ctx context.Context, a *API[string], first Thing[string]) error {
			_ = a.Update(ctx, Thing[string]{Name: "ann", Fields: "theirs"})
			first.Fields = "ours"
			return a.Update(ctx, first)
		}, http.StatusPreconditionFailed, []string{"ann first theirs"}},
		"UpdateOfNothing": {"what does not exist is not created", false, func(ctx context.Context, a *API[string], _ Thing[string]) error {
			return a.Update(ctx, Thing[string]{Name: "bob"})
		}, http.StatusNotFound, []string{"ann first old"}},
		"Delete": {"it is gone", true, func(ctx context.Context, a *API[string], first Thing[string]) error {
			return a.Delete(ctx, first.ID)
		}, 0, nil},
		"DeleteTwice": {"it is gone already", false, func(ctx context.Context, a *API[string], first Thing[string]) error {
			_ = a.Delete(ctx, first.ID)
			return a.Delete(ctx, first.ID)
		}, http.StatusNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &API[string]{GivesIDs: tc.givesIDs}
			first, err := a.Create(t.Context(), ann)
			if err != nil {
				t.Fatal(err)
			}
			err = tc.do(t.Context(), a, first)
			if got := StatusOf(err); got != tc.status || got == 0 && err != nil {
				t.Errorf("%s: the answer is %v, want status %d", tc.reason, err, tc.status)
			}
			var got []string
			for _, thing := range a.Things() {
				got = append(got, thing.Name+" "+thing.Owner+" "+thing.Fields)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestJudge checks which findings the API reports.
func TestJudge(t *testing.T) {
	web, api := request.ObjectID{}, request.ObjectID{}
	web.Name.Name, api.Name.Name = "web", "api"
	by := func(object request.ObjectID, pass int) context.Context {
		return outside.NewContext(t.Context(), &outside.Call{Object: object, Pass: pass})
	}
	named := Thing[int]{Name: "ann"}
	for name, tc := range map[string]struct {
		reason  string
		do      func(a *API[int])
		twice   []string
		orphans []string
	}{
		"Twice": {"two for one object", func(a *API[int]) {
			_, _ = a.Create(by(web, 1), named)
			_, _ = a.Create(by(web, 3), named)
		}, []string{"account ann, for  web: created in pass 1 and in pass 3"}, nil},
		"TwoObjects": {"one for each of two objects", func(a *API[int]) {
			_, _ = a.Create(by(web, 1), named)
			_, _ = a.Create(by(api, 2), named)
		}, nil, []string{"account ann, created in pass 2 for  api"}},
		"TwoNames": {"things of two names", func(a *API[int]) {
			_, _ = a.Create(by(web, 1), named)
			_, _ = a.Create(by(web, 1), Thing[int]{Name: "bob"})
		}, nil, nil},
		"Replaced": {"the first one is gone", func(a *API[int]) {
			first, _ := a.Create(by(web, 1), named)
			_ = a.Delete(by(web, 2), first.ID)
			_, _ = a.Create(by(web, 2), named)
		}, nil, nil},
		"ByTheUser": {"what the user creates is not the operator's", func(a *API[int]) {
			_, _ = a.Create(t.Context(), named)
			_, _ = a.Create(by(web, 1), named)
		}, nil, nil},
		"OutsideOfPasses": {"the owner says what belongs together", func(a *API[int]) {
			_, _ = a.Create(by(request.ObjectID{}, 0), Thing[int]{Owner: "web"})
			_, _ = a.Create(by(request.ObjectID{}, 0), Thing[int]{Owner: "web"})
		}, []string{"account web, for the owner web: created outside of a pass and outside of a pass"}, nil},
		"HandedOver": {"it belongs to the object that has changed it last", func(a *API[int]) {
			made, _ := a.Create(by(api, 1), named)
			made.Fields = 2
			_ = a.Update(by(web, 2), made)
		}, nil, nil},
		"Shared": {"another object reads it, and may need it", func(a *API[int]) {
			made, _ := a.Create(by(api, 1), named)
			_, _ = a.Get(by(web, 2), made.ID)
		}, nil, nil},
		"Orphan": {"its object is gone", func(a *API[int]) {
			_, _ = a.Create(by(api, 4), named)
		}, nil, []string{"account ann, created in pass 4 for  api"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &API[int]{Kind: "account", GivesIDs: true}
			tc.do(a)
			j := judge[int]{a.store()}
			if diff := cmp.Diff(tc.twice, j.Twice()); diff != "" {
				t.Errorf("%s: twice: -want +got:\n%s", tc.reason, diff)
			}
			orphans := j.Orphans(func(id request.ObjectID) bool { return id == web })
			if diff := cmp.Diff(tc.orphans, orphans); diff != "" {
				t.Errorf("%s: orphans: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestForeign checks which calls count as changes of a thing of somebody else.
func TestForeign(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		do     func(ctx context.Context, a *API[int]) error
		want   string
	}{
		"Read": {"it may be read", func(ctx context.Context, a *API[int]) error { _, err := a.Get(ctx, "theirs"); return err }, ""},
		"Update": {"it is theirs", func(ctx context.Context, a *API[int]) error {
			return a.Update(ctx, Thing[int]{Name: "theirs", Fields: 2})
		}, "changes account theirs, which belongs to others"},
		"NoChange": {"nothing is done to it", func(ctx context.Context, a *API[int]) error {
			return a.Update(ctx, Thing[int]{Name: "theirs", Fields: 1})
		}, ""},
		"Delete":   {"it is theirs", func(ctx context.Context, a *API[int]) error { return a.Delete(ctx, "theirs") }, "deletes account theirs, which belongs to others"},
		"Existing": {"it may be taken over", func(ctx context.Context, a *API[int]) error { return a.Delete(ctx, "free") }, ""},
		"CreatedLater": {"somebody else has created it in the run", func(ctx context.Context, a *API[int]) error {
			_, err := a.CreateForOthers(context.Background(), Thing[int]{Name: "late"})
			return errors.Join(err, a.Delete(ctx, "late"))
		}, "deletes account late, which belongs to others"},
		"TakenLater": {"the creation of others is refused", func(ctx context.Context, a *API[int]) error {
			if _, err := a.CreateForOthers(context.Background(), Thing[int]{Name: "free"}); StatusOf(err) != http.StatusConflict {
				return fmt.Errorf("it is answered with %w", err)
			}
			return a.Delete(ctx, "free")
		}, ""},
		"Successor": {"they have deleted it, and the name is free", func(ctx context.Context, a *API[int]) error {
			_ = a.Delete(context.Background(), "theirs")
			_, _ = a.Create(ctx, Thing[int]{Name: "theirs"})
			return a.Delete(ctx, "theirs")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &API[int]{Kind: "account", Existing: []Thing[int]{{Name: "free"}}, Others: []Thing[int]{{Name: "theirs", Fields: 1}}}
			call := &outside.Call{}
			if err := tc.do(outside.NewContext(t.Context(), call), a); err != nil {
				t.Fatal(err)
			}
			if call.Foreign != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, call.Foreign, tc.want)
			}
		})
	}
}
