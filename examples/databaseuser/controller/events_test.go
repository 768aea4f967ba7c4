package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
)

func TestEvents(t *testing.T) {
	passes := (&controller.Operator{Target: "Shop"}).Events()
	user := func(label, recorded string, edits ...func(*userv1alpha1.DatabaseUser)) *userv1alpha1.DatabaseUser {
		u := sample()
		u.Labels = map[string]string{"target": label}
		u.Status.Target = recorded
		for _, edit := range edits {
			edit(u)
		}
		return u
	}
	deleting := func(u *userv1alpha1.DatabaseUser) { u.DeletionTimestamp = new(metav1.NewTime(noon)) }
	unlabeled := func(u *userv1alpha1.DatabaseUser) { u.Labels = nil }
	tests := map[string]struct {
		reason   string
		old, new *userv1alpha1.DatabaseUser // old is nil for a creation
		want     bool
	}{
		"Labeled":          {"it is for this operator", nil, user("shop", ""), true},
		"OtherCase":        {"case is ignored", nil, user("SHOP", ""), true},
		"OtherLabel":       {"it is for another operator", nil, user("archive", ""), false},
		"Unlabeled":        {"it is for nobody", nil, user("", "", unlabeled), false},
		"EmptyLabel":       {"likewise", nil, user("", ""), false},
		"LabelGained":      {"it becomes ours", user("archive", ""), user("shop", ""), true},
		"LabelLost":        {"its account has to be dropped", user("shop", ""), user("archive", ""), true},
		"LabelRemoved":     {"likewise", user("shop", ""), user("", "", unlabeled), true},
		"Recorded":         {"the label was changed while the operator was down", nil, user("archive", "shop"), true},
		"RecordedUpdate":   {"the account has still to be dropped", user("archive", "shop"), user("archive", "shop"), true},
		"RecordLost":       {"what waits for the account has to be told", user("archive", "shop"), user("archive", ""), true},
		"RecordedByOthers": {"it waits, and the release is an event too", user("shop", "archive"), user("shop", ""), true},
		"OthersUpdate":     {"nothing to do with this operator", user("archive", "archive"), user("archive", ""), false},
		"Deleting":         {"any operator may finish a deletion", user("archive", "archive", deleting), user("archive", "archive", deleting), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.old == nil {
				assert.Equal(t, tc.want, passes.Create(event.CreateEvent{Object: tc.new}), tc.reason)
				assert.Equal(t, tc.want, passes.Generic(event.GenericEvent{Object: tc.new}), tc.reason)
			} else {
				assert.Equal(t, tc.want, passes.Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}), tc.reason)
			}
			assert.True(t, passes.Delete(event.DeleteEvent{Object: tc.new}), "what is remembered has to be forgotten")
		})
	}
}
