package memoryserver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// create stores a new object. The caller must not use obj afterwards. The caller holds the lock.
func (s *Server) create(k *kind.Kind, namespace string, obj client.Object, options writeOptions) (client.Object, error) {
	if err := matchNamespace(k, namespace, obj); err != nil {
		return nil, err
	}
	k.Strategy.SetDefaults(obj)
	dedupOwnerReferences(obj)
	request := s.repeatable(k, s.store.newObjectRequest(k, "", obj, options))
	key := k.Key(obj.GetNamespace(), obj.GetName())
	if earlier := s.store.earlierCreation(k, key, request); earlier != nil {
		return s.store.reuse(k, key, earlier), nil
	}
	obj = s.fieldManager(k, "").UpdateNoErrors(k.Strategy.New(), obj, options.manager).(client.Object)
	if obj.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	return s.insert(k, obj, options, request)
}

// insert stores a new object, for create and apply. It returns the object in the storage version. An applied object may have a resource
// version.
func (s *Server) insert(k *kind.Kind, obj client.Object, options writeOptions, request *writeRequest) (client.Object, error) {
	w := &write{kind: k, key: k.Key(obj.GetNamespace(), obj.GetName()), operation: admission.Create, options: options}
	obj, err := s.mutate(w, obj, nil)
	if err != nil {
		return nil, err
	}
	dedupOwnerReferences(obj)
	obj.SetCreationTimestamp(now())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	if generated {
		obj.SetName(obj.GetGenerateName() + s.suffixes.next(k, obj.GetNamespace(), obj.GetGenerateName()))
	}
	key := k.Key(obj.GetNamespace(), obj.GetName())
	obj.SetUID(s.newUID(k, key, options.dryRun))
	if err := s.admitCreate(k, key); err != nil {
		return nil, err
	}
	if err := k.Strategy.Allocate(k, s.store.table(k).objects, obj, nil); err != nil {
		return nil, err
	}
	k.Strategy.PrepareForCreate(obj)
	if errs := k.Strategy.Validate(obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.GVK.GroupKind(), obj.GetName(), errs)
	}
	if w.key = key; generated {
		w.key.Name = "" // a generated name is not in the request
	}
	if err := s.validate(w, obj, nil); err != nil {
		return nil, err
	}
	read, stored, err := s.encode(k, obj, options)
	if err != nil {
		return nil, err
	}
	if live := s.store.find(k, key); live != nil {
		return nil, alreadyExists(k, live.object, generated)
	}
	if options.dryRun {
		return read, nil
	}
	made := s.store.commit(k, key, read, stored)
	made.request = request
	return made.object, nil
}

// dedupOwnerReferences removes owner references that occur twice.
func dedupOwnerReferences(object client.Object) {
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

func alreadyExists(k *kind.Kind, live client.Object, generated bool) error {
	err := apierrors.NewAlreadyExists(k.GroupResource(), live.GetName())
	if generated {
		err = apierrors.NewGenerateNameConflict(k.GroupResource(), live.GetName(), 1)
	}
	if live.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// now returns the time in whole seconds, as the API stores times.
func now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// matchNamespace sets the namespace of the request in the object. If the object has another namespace, it returns an error.
func matchNamespace(k *kind.Kind, namespace string, object client.Object) error {
	switch {
	case !k.Namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	case object.GetNamespace() != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// matchName sets the name of the request in the object. If the object has another name, it returns an error.
func matchName(object client.Object, name string) error {
	if object.GetName() == "" {
		object.SetName(name)
	}
	if object.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), name))
	}
	return nil
}
