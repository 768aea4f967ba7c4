package reconcile

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/conditions"
)

// tower has its conditions in a slice type of its own.
type tower struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status struct {
		Conditions towerConditions `json:"conditions"`
	}
}

type towerConditions []metav1.Condition

func (t *tower) DeepCopyObject() runtime.Object { c := *t; return &c }

func TestTransitionsAreKeptInANamedSlice(t *testing.T) {
	s, err := newStatusType(reflect.TypeFor[tower](), conditions.Standard())
	require.NoError(t, err)
	with := func(at time.Time) *tower {
		made := &tower{}
		made.Status.Conditions = towerConditions{{Type: "Up", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
		return made
	}
	before, after := with(noon), with(noon.Add(time.Second)) // set to and fro
	s.keepTransitions(before, after)
	require.True(t, s.equal(before, after), "nothing has changed, so nothing is written")
}
