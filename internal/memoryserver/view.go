package memoryserver

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsjson "sigs.k8s.io/json"
)

// view gives a version in the Go type that is asked for, with apiVersion and kind. It is made once
// and then shared: nobody may write to it. The caller holds the lock.
func (s *Server) view(k *kind, v *version, as reflect.Type) (client.Object, error) {
	if reflect.TypeOf(v.object) == as {
		return v.object, nil
	}
	for _, made := range v.views {
		if reflect.TypeOf(made) == as {
			return made, nil
		}
	}
	made, err := decodeView(k, v.object, as)
	if err != nil {
		return nil, err
	}
	v.views = append(v.views, made)
	return made, nil
}

func decodeView(k *kind, object client.Object, as reflect.Type) (client.Object, error) {
	made, ok := reflect.TypeAssert[client.Object](reflect.New(as.Elem()))
	if !ok {
		return nil, fmt.Errorf("%s cannot be read into a %s: it is no client.Object", k.gvk.Kind, as)
	}
	if err := decodeInto(k, object, made); err != nil {
		return nil, fmt.Errorf("read %s %s into a %s: %w", k.gvk.Kind, client.ObjectKeyFromObject(object), as, err)
	}
	made.GetObjectKind().SetGroupVersionKind(k.gvk)
	return made, nil
}

func decodeInto(k *kind, object, made client.Object) error {
	content, err := k.rules.encode(object)
	if err != nil {
		return err
	}
	if untyped, is := made.(*unstructured.Unstructured); is {
		return utiljson.Unmarshal(content, &untyped.Object)
	}
	return sigsjson.UnmarshalCaseSensitivePreserveInts(content, made)
}

// sharedView gives a version in the scheme's Go type, or nil for none.
func (s *Server) sharedView(k *kind, v *version) client.Object {
	if v == nil || v.object == nil {
		return nil
	}
	if as, known := s.scheme.AllKnownTypes()[k.gvk]; known {
		if made, err := s.view(k, v, reflect.PointerTo(as)); err == nil {
			return made
		}
	}
	made, err := s.view(k, v, reflect.TypeFor[*unstructured.Unstructured]())
	if err != nil {
		panic(fmt.Sprintf("%s was stored and cannot be read: %v", k.gvk, err))
	}
	return made
}

// copyInto writes a copy of a view into an object of the same type. Like a typed client it leaves
// no apiVersion and kind in Go types.
func copyInto(out, view client.Object) {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(view.DeepCopyObject()).Elem())
	if !isUntyped(out) {
		out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// isUntyped reports whether an object says its kind itself.
func isUntyped(object client.Object) bool {
	switch object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// answer writes what the server holds into the object of a request.
func answer(k *kind, held, out client.Object) error {
	if reflect.TypeOf(held) == reflect.TypeOf(out) {
		copyInto(out, held)
		return nil
	}
	made, err := decodeView(k, held, reflect.TypeOf(out))
	if err != nil {
		return err
	}
	copyInto(out, made)
	return nil
}

// receive gives the object of a request in the form in which the server holds it.
func receive(k *kind, object client.Object, strict bool) (client.Object, error) {
	if b, is := k.rules.(*builtIn); is && reflect.TypeOf(object) == reflect.TypeOf(b.like) {
		return b.normalized(object)
	}
	content, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.gvk.Kind, err)
	}
	received, err := k.rules.decode(content, strict)
	if err != nil {
		return nil, undecodable(k, err)
	}
	return received, nil
}
