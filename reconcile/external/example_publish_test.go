package external_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external"
)

// The API returns the key of an account only when it creates the key. Observe, Create and the other functions are
// left out here.
func ExampleResource_publish() {
	r := external.Resource[*Account, entry]{
		Publish: func(a *Account, state entry) *corev1.Secret {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: a.Name + "-account"},
				Data:       map[string][]byte{"login": []byte(state.Login), "key": nil}, // Issue returns the key
			}
		},
		Issue: func(_ context.Context, _ client.Client, _ *Account, ref external.Reference, _ entry) (map[string][]byte, error) {
			return map[string][]byte{"key": []byte("the new key of " + ref.Key)}, nil // this makes the former key invalid
		},
	}
	fmt.Println(r.Publish(newAccount(), entry{Login: "alice"}).Name)
	// Output: alice-account
}

// If an object leaves a field unset, the API chooses its value.
func ExampleResource_unsetFields() {
	r := external.Resource[*Account, entry]{
		Differs: func(_ external.Reference, observed, desired entry) bool {
			return desired.Quota != 0 && observed.Quota != desired.Quota
		},
	}
	fmt.Println(r.Differs(external.Reference{}, entry{Quota: 5}, entry{}), r.Differs(external.Reference{}, entry{Quota: 5}, entry{Quota: 2}))
	// Output: false true
}
