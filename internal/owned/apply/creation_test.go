package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/owned"
)

func TestAnswerOfARefusedCreation(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	tests := map[string]struct {
		reason    string
		namespace string // where the child is; the owner is in shop
		err       error
		waits     bool
		delay     time.Duration
	}{
		"InItsNamespace":   {reason: "The owner is deleted with the namespace, and its deletion is an event.", namespace: "shop", err: terminating, waits: true},
		"InAnother":        {reason: "No event shows when the other namespace is gone.", namespace: "other", err: terminating, waits: true, delay: terminatingNamespaceDelay},
		"ForAnotherReason": {reason: "It is a failure, which is retried.", namespace: "other", err: errors.New("no connection")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "a"}}
			k, err := owned.BuiltIn.Of(obj, scheme.Scheme)
			require.NoError(t, err)
			d := &owned.Desired{Kind: k, Object: obj, Full: obj, Owner: &owned.Owner{Namespace: "shop"}, Options: &owned.Options{}}
			answer, err := (&Applier{}).answer(&Creation{Desired: d, object: obj, err: tc.err})
			require.Nil(t, answer)
			wait, waits := errors.AsType[*owned.WaitingError](err)
			require.Equal(t, tc.waits, waits, tc.reason)
			if !waits {
				require.ErrorIs(t, err, tc.err)
				require.ErrorContains(t, err, "create ConfigMap other/a: ")
				return
			}
			reason, after := wait.Waiting()
			require.Equal(t, owned.ReasonTerminating, reason)
			require.Equal(t, tc.delay, after, tc.reason)
		})
	}
}
