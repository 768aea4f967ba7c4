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

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// view returns the object of v decoded into the Go type as, in the API version of the kind, with apiVersion and kind. The result is shared
// by all callers: nobody may change it. The caller holds the lock.
func (s *Server) view(k *kind.Kind, v *version, as reflect.Type) (client.Object, error) {
	if found := v.knownView(k, as); found != nil {
		return found, nil
	}
	decoded := v.earlierView(k, as)
	if decoded == nil {
		object, err := s.objectIn(k, v)
		if err != nil {
			return nil, err
		}
		if reflect.TypeOf(object) == as {
			return object, nil
		}
		if decoded, err = decodeView(k, object, as); err != nil {
			return nil, err
		}
	}
	v.views = append(v.views, decoded)
	return decoded, nil
}

// knownView returns the object of v in this Go type and version if it was decoded before. Otherwise it returns nil.
func (v *version) knownView(k *kind.Kind, as reflect.Type) client.Object {
	if k == k.Storage() && reflect.TypeOf(v.object) == as {
		return v.object
	}
	for _, decoded := range v.views {
		if reflect.TypeOf(decoded) == as && (k.Versions == nil || decoded.GetObjectKind().GroupVersionKind() == k.GVK) {
			return decoded
		}
	}
	return nil
}

func decodeView(k *kind.Kind, object client.Object, as reflect.Type) (client.Object, error) {
	decoded, ok := reflect.TypeAssert[client.Object](reflect.New(as.Elem()))
	if !ok {
		return nil, fmt.Errorf("%s cannot be read into a %s: it is not a client.Object", k.GVK.Kind, as)
	}
	if err := decodeInto(k, object, decoded); err != nil {
		return nil, fmt.Errorf("read %s %s into a %s: %w", k.GVK.Kind, client.ObjectKeyFromObject(object), as, err)
	}
	decoded.GetObjectKind().SetGroupVersionKind(k.GVK)
	return decoded, nil
}

func decodeInto(k *kind.Kind, object, decoded client.Object) error {
	content, err := k.Strategy.Encode(object)
	if err != nil {
		return err
	}
	if untyped, is := decoded.(*unstructured.Unstructured); is {
		return utiljson.Unmarshal(content, &untyped.Object)
	}
	return sigsjson.UnmarshalCaseSensitivePreserveInts(content, decoded)
}

// sharedView is like view, for the scheme's Go type of the kind, or unstructured if the scheme has none. If v is a deletion, it returns
// nil.
func (s *Server) sharedView(k *kind.Kind, v *version) client.Object {
	if v == nil || v.object == nil {
		return nil
	}
	if as, known := s.scheme.AllKnownTypes()[k.GVK]; known {
		if decoded, err := s.view(k, v, reflect.PointerTo(as)); err == nil {
			return decoded
		}
	}
	decoded, err := s.view(k, v, untypedType)
	switch {
	case err == nil:
		return decoded
	case k != k.Storage():
		return v.object // it cannot be converted, so it is returned in the storage version
	}
	panic(fmt.Sprintf("%s was stored and cannot be read: %v", k.GVK, err))
}

// copyInto writes a copy of view into out, which has the same type. As with a typed client, Go types lose apiVersion and kind.
func copyInto(out, view client.Object) { moveInto(out, view.DeepCopyObject().(client.Object)) }

// moveInto is like copyInto, and does not copy. The caller must not use view afterwards.
func moveInto(out, view client.Object) {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(view).Elem())
	if !isUntyped(out) {
		out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// isUntyped reports whether an object has its kind in its fields: its Go type does not determine the kind.
func isUntyped(object client.Object) bool {
	switch object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// respond writes a stored object into the object of the request, in the version of the request.
func (c *liveClient) respond(k *kind.Kind, held, out client.Object) error {
	if k == k.Storage() && reflect.TypeOf(held) == reflect.TypeOf(out) {
		copyInto(out, held)
		return nil
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if v := c.server.store.find(k, client.ObjectKeyFromObject(held)); v != nil && v.object == held {
		shown, err := c.server.view(k, v, reflect.TypeOf(out)) // the decoded object is kept, since other requests will read it too
		if err != nil {
			return asStatus(err)
		}
		copyInto(out, shown)
		return nil
	}
	shown, err := c.server.convertTo(k, held)
	if err != nil {
		return asStatus(err)
	}
	decoded, err := decodeView(k, shown, reflect.TypeOf(out))
	if err != nil {
		return err
	}
	moveInto(out, decoded)
	return nil
}

// encoded returns a stored object as JSON, in the version of a request. The caller does not hold the lock.
func (s *Server) encoded(k *kind.Kind, held client.Object) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown, err := s.convertTo(k, held)
	if err != nil {
		return nil, asStatus(err)
	}
	return k.Strategy.Encode(shown)
}

// decodeRequest returns the object of a request in the Go type in which the server holds its kind.
func decodeRequest(k *kind.Kind, object client.Object, strict bool) (client.Object, error) {
	if received, ok, err := k.Strategy.FromObject(object); ok || err != nil {
		return received, err
	}
	content, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.GVK.Kind, err)
	}
	received, err := k.Strategy.Decode(content, strict)
	if err != nil {
		return nil, decodeError(k, err)
	}
	return received, nil
}
