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
	return metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: owner.GetName(), Labels: Labels(owner)}
}

// Labels gives the recommended labels of what an owner has, as [NewDeployment] and [NewService]
// set them: app.kubernetes.io/name is its kind in lower case, app.kubernetes.io/instance its name
// (see [LabelValue]), app.kubernetes.io/managed-by the kind with "-operator".
func Labels(owner client.Object) map[string]string {
	labels := defaultSelector(owner)
	labels[labelManagedBy] = labels[labelName] + "-operator"
	return labels
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
