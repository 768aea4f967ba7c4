package memoryserver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create stores a new object. It takes the object over. The caller holds the lock.
func (s *Server) create(k *kind, namespace string, made client.Object, options writeOptions) (client.Object, error) {
	if err := matchNamespace(k, namespace, made); err != nil {
		return nil, err
	}
	k.rules.setDefaults(made)
	dropSameOwners(made)
	made = k.fields[""].UpdateNoErrors(k.rules.empty(), made, options.manager).(client.Object)
	if made.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	return s.insert(k, made, options)
}

// insert is the part of creating that applying has too, which may carry a resource version.
func (s *Server) insert(k *kind, made client.Object, options writeOptions) (client.Object, error) {
	made.SetUID(s.newUID())
	made.SetCreationTimestamp(now())
	made.SetDeletionTimestamp(nil)
	made.SetDeletionGracePeriodSeconds(nil)
	made.SetSelfLink("")
	generated := made.GetName() == "" && made.GetGenerateName() != ""
	if generated {
		made.SetName(made.GetGenerateName() + s.newSuffix())
	}
	key := k.key(made.GetNamespace(), made.GetName())
	if err := s.admitCreate(k, key); err != nil {
		return nil, err
	}
	if err := k.rules.assign(s.table(k), made, nil); err != nil {
		return nil, err
	}
	k.rules.prepareCreate(made)
	if errs := k.rules.validate(made); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), made.GetName(), errs)
	}
	read, stored, err := k.rules.settle(made, options.applied)
	if err != nil {
		return nil, err
	}
	if live := s.table(k).find(key); live != nil {
		return nil, exists(k, live.object, generated)
	}
	if options.dryRun {
		return read, nil
	}
	return s.commit(k, key, read, stored).object, nil
}

// dropSameOwners removes owner references that are there twice.
func dropSameOwners(object client.Object) {
	var kept []metav1.OwnerReference
	owners := object.GetOwnerReferences()
	for _, owner := range owners {
		if !slices.ContainsFunc(kept, func(k metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(k, owner) }) {
			kept = append(kept, owner)
		}
	}
	if len(kept) < len(owners) {
		object.SetOwnerReferences(kept)
	}
}

func exists(k *kind, live client.Object, generated bool) error {
	err := apierrors.NewAlreadyExists(k.groupResource(), live.GetName())
	if generated {
		err = apierrors.NewGenerateNameConflict(k.groupResource(), live.GetName(), 1)
	}
	if live.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// now is in whole seconds, as the API stores times.
func now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// matchNamespace fills in the namespace of the request.
func matchNamespace(k *kind, namespace string, object client.Object) error {
	switch {
	case !k.namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	case object.GetNamespace() != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// matchName refuses to rename an object.
func matchName(object client.Object, name string) error {
	if object.GetName() == "" {
		object.SetName(name)
	}
	if object.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), name))
	}
	return nil
}

func invalid(k *kind, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(k.gvk.GroupKind(), name, errs)
}
