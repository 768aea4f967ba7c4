package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A deployment tool such as Argo CD may treat each object with the label app.kubernetes.io/instance as a part of the application that the
// label names. If the application does not declare such an object, and the object has no owner reference, the tool deletes it. A custom
// resource often has the name of its application, and the builders set the label to this name on its children. So HideFromApplications
// removes the label from a child without an owner reference. If other objects select the child by its labels, the child keeps the label,
// and gets an annotation that tells Argo CD not to prune it.

const (
	// InstanceLabel is the recommended label for the name of an application's instance.
	InstanceLabel = "app.kubernetes.io/instance"
	syncOptions   = "argocd.argoproj.io/sync-options" // a list that is separated by commas
	neverPrune    = "Prune=false"
)

// selectedKinds are the kinds whose objects other objects select by label.
var selectedKinds = map[schema.GroupKind]bool{
	{Kind: "Pod"}:              true, // Services and policies select pods
	{Kind: "Service"}:          true, // monitors select Services
	{Kind: "PersistentVolume"}: true, // claims select volumes
	{Kind: "Namespace"}:        true, // network policies select namespaces
	{Group: rbacv1.GroupName, Kind: "ClusterRole"}: true, // an aggregated ClusterRole selects others
}

// HideFromApplications changes the labels and the annotations of a child without an owner reference, so that no deployment tool deletes the
// child as a part of the application with the owner's name. It does not change the maps in place, because the user may share them with a
// selector.
func (o *Owner) HideFromApplications(kind schema.GroupKind, obj client.Object) {
	if obj.GetLabels()[InstanceLabel] != LabelValue(o.Reference.Name) {
		return
	}
	if !selectedKinds[kind] {
		labels := maps.Clone(obj.GetLabels())
		delete(labels, InstanceLabel)
		obj.SetLabels(labels)
		return
	}
	options := strings.FieldsFunc(obj.GetAnnotations()[syncOptions], func(r rune) bool { return r == ',' || r == ' ' })
	if !slices.ContainsFunc(options, func(option string) bool { return strings.HasPrefix(option, "Prune=") }) {
		SetAnnotation(obj, syncOptions, strings.Join(append(options, neverPrune), ","))
	}
}

// LabelValue turns the name of an object into a label value, as [ownedresources.LabelValue] describes.
func LabelValue(name string) string {
	if len(name) < validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return name[:validation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}
