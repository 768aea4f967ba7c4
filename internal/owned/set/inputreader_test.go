package set

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/versions"
)

func TestRememberInput(t *testing.T) {
	tests := map[string]struct {
		reason    string
		readsAnew bool
		reader    InputReader
		err       error
		want      bool
	}{
		"PastCache": {reason: "The next reconcile is spared the requests.", reader: InputReader{pastCache: true}, want: true},
		"CacheOnly": {reason: "Reading it again costs no request.", reader: InputReader{}},
		"ReadFailed": {
			reason: "The function made a value without what it could not read, and no version shows when it can.",
			reader: InputReader{pastCache: true, failed: true},
		},
		"Error":     {reason: "There is no value.", reader: InputReader{pastCache: true}, err: errors.New("not valid")},
		"ReadsAnew": {reason: "A preview and a check leave nothing behind.", readsAnew: true, reader: InputReader{pastCache: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, input := &Set{Owners: newOwnerMemory(&versions.Epoch{})}, &Input{}
			r := &Reconciliation{Set: s, owner: &owned.Owner{Reference: metav1.OwnerReference{UID: "o"}}, readsAnew: tc.readsAnew}
			tc.reader.reads = []owned.ReadVersion{{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Name: types.NamespacedName{Namespace: "ns", Name: "a"}, Version: "u/1"}}
			r.remember(input, 7, &tc.reader, "value", tc.err)
			known, ok := s.Owners.input("o", input)
			require.Equal(t, tc.want, ok, tc.reason)
			if ok {
				require.Equal(t, inputMemory{owner: 7, reads: tc.reader.reads, value: "value"}, known)
			}
			require.Equal(t, tc.reader.failed, r.unknown, "the reconcile cannot be settled if a read failed")
		})
	}
}
