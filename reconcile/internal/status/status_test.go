package status

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/conditions"
)

func TestNewInvalidType(t *testing.T) {
	tests := map[string]struct {
		reason string
		object reflect.Type
		want   string // a part of the error
	}{
		"PointerStatus": {
			reason: "a nil status has no fields to set",
			object: reflect.TypeFor[struct{ Status *policyv1.PodDisruptionBudget }](),
			want:   "is not a plain struct",
		},
		"EmbeddedPointer": {
			reason: "the fields of a nil struct cannot be set",
			object: reflect.TypeFor[struct {
				Status struct {
					*policyv1.PodDisruptionBudgetStatus
				}
			}](),
			want: "embeds the pointer",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.object, conditions.Standard(), nil)
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}

// tower is a kind whose conditions have a slice type of the kind's own.
type tower struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status struct {
		Conditions towerConditions `json:"conditions"`
	}
}

type towerConditions []metav1.Condition

func (t *tower) DeepCopyObject() runtime.Object { c := *t; return &c }

func TestTransitionTimeIsKeptInNamedSlice(t *testing.T) {
	s, err := New(reflect.TypeFor[tower](), conditions.Standard(), nil)
	require.NoError(t, err)
	with := func(at time.Time) *tower {
		made := &tower{}
		made.Status.Conditions = towerConditions{{Type: "Up", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
		return made
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	before, after := with(noon), with(noon.Add(time.Second)) // the condition was changed and changed back
	s.Complete(before, after, true)
	require.True(t, s.Equal(before, after), "a condition that was changed and changed back is no difference")
}
