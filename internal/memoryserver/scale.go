package memoryserver

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/internal/memoryserver/builtin"
	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// scaleOf returns the scale subresource of an object.
func scaleOf(k *kind.Kind, object client.Object) *autoscalingv1.Scale {
	s := k.Strategy.(kind.Scaler).Scale(object)
	s.ObjectMeta = metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
	}
	s.APIVersion, s.Kind = "autoscaling/v1", "Scale"
	return &s
}

// rescale sets the number of replicas. The caller holds the lock.
func (s *Server) rescale(k *kind.Kind, key client.ObjectKey, uid types.UID, change func(*autoscalingv1.Scale) error, options writeOptions) (*autoscalingv1.Scale, error) {
	stored, err := s.modify(k, key, kind.ScaleSubresource, uid, options, nil, func(live client.Object) (client.Object, error) {
		scale := scaleOf(k, live)
		if err := change(scale); err != nil {
			return nil, err
		}
		obj := live.DeepCopyObject().(client.Object)
		if err := k.Strategy.(kind.Scaler).SetScale(obj, scale); err != nil {
			return nil, err
		}
		if scale.ResourceVersion != "" {
			obj.SetResourceVersion(scale.ResourceVersion)
		}
		return obj, setReplicasOwner(k, obj, live, scale, options.manager)
	})
	if err != nil {
		return nil, err
	}
	return scaleOf(k, stored), nil
}

// setReplicasOwner makes the manager of a scale request the owner of the replicas, as the managed fields of the scale
// have it.
func setReplicasOwner(k *kind.Kind, obj, live client.Object, scale *autoscalingv1.Scale, manager string) (err error) {
	path := fieldpath.Path{}
	for _, step := range k.Strategy.(kind.Scaler).ReplicasPath() {
		path = append(path, fieldpath.PathElement{FieldName: &step})
	}
	gv := k.GVK.GroupVersion()
	owners := managedfields.NewScaleHandler(live.GetManagedFields(), gv, managedfields.ResourcePathMappings{gv.String(): path})
	before := scaleOf(k, live)
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return err
	}
	scale.APIVersion, scale.Kind = before.APIVersion, before.Kind
	after := builtin.ScaleFieldManager().UpdateNoErrors(before, scale, manager).(*autoscalingv1.Scale)
	managers, err := owners.ToParent(after.ManagedFields)
	obj.SetManagedFields(managers)
	return err
}
