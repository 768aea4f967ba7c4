package reconciletest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// StableShop is the version that is stored.
type StableShop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              StableShopSpec `json:"spec"`
}

type StableShopSpec struct {
	Replicas int32  `json:"replicas,omitempty"`
	Domain   string `json:"domain,omitempty"` // new in this version
}

// AlphaShop is the earlier version.
type AlphaShop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AlphaShopSpec `json:"spec"`
}

type AlphaShopSpec struct {
	Size int32 `json:"size,omitempty"`
}

func (s *StableShop) DeepCopyObject() runtime.Object { return new(*s) }
func (s *AlphaShop) DeepCopyObject() runtime.Object  { return new(*s) }

// Hub marks the version that all others are converted to.
func (*StableShop) Hub() {}

// ConvertTo implements [conversion.Convertible].
func (s *AlphaShop) ConvertTo(dst conversion.Hub) error {
	stable := dst.(*StableShop)
	s.ObjectMeta.DeepCopyInto(&stable.ObjectMeta)
	if kept, ok := stable.Annotations["example.com/stable"]; ok {
		if err := json.Unmarshal([]byte(kept), &stable.Spec); err != nil {
			return err
		}
		delete(stable.Annotations, "example.com/stable")
	}
	stable.Spec.Replicas = s.Spec.Size
	return nil
}

// ConvertFrom implements [conversion.Convertible].
func (s *AlphaShop) ConvertFrom(src conversion.Hub) error {
	stable := src.(*StableShop)
	stable.ObjectMeta.DeepCopyInto(&s.ObjectMeta)
	s.Spec.Size = stable.Spec.Replicas
	if stable.Spec.Domain == "" {
		return nil
	}
	kept, err := json.Marshal(StableShopSpec{Domain: stable.Spec.Domain}) // an earlier version cannot hold it
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/stable", string(kept))
	return err
}

// Nothing is lost on the way from one version of a Shop to the other one and back.
func ExampleRoundTrip() {
	t := new(testing.T) // in a test it is the function's own
	reconciletest.RoundTrip(t, &StableShop{}, &AlphaShop{})
	fmt.Println(t.Failed())
	// Output: false
}
