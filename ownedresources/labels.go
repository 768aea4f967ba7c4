package ownedresources

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The labels that Kubernetes recommends,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

func metadata(owner client.Object) metav1.ObjectMeta {
	name := kindName(owner)
	return metav1.ObjectMeta{
		Namespace: owner.GetNamespace(),
		Name:      owner.GetName(),
		Labels: map[string]string{
			labelName:      name,
			labelInstance:  LabelValue(owner.GetName()),
			labelManagedBy: name + "-operator",
		},
	}
}

func defaultSelector(owner client.Object) map[string]string {
	return map[string]string{labelName: kindName(owner), labelInstance: LabelValue(owner.GetName())}
}

// kindName is the owner's kind in lower case; the Go type is named for it.
func kindName(owner client.Object) string {
	return strings.ToLower(reflect.TypeOf(owner).Elem().Name())
}

// LabelValue makes a label's value of an object's name. A name may have 253 characters, a value
// only 63: what is longer is cut, with a hash of the whole, so that different names stay so.
func LabelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return name[:validation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}
