package memoryserver

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/webhook"
)

// Webhooks adds the webhooks of the configurations in YAML or JSON files. If a path is a folder, it reads the files directly in it. The
// webhooks are called only after [Server.AdmitByWebhooks].
func Webhooks(paths ...string) Option {
	return func(s *settings) (err error) {
		s.hooks, err = webhook.Read(paths...)
		return err
	}
}

// write is a request for which webhooks may be called.
type write struct {
	kind        *kind.Kind
	key         client.ObjectKey
	operation   admission.Operation
	subresource string
	options     writeOptions
}

// invocation is the call of a webhook for a write. kind is the kind in the version that the webhook gets.
type invocation struct {
	hook *webhook.Hook
	kind *kind.Kind
}

// mutate calls the mutating webhooks for an object, and returns the object that they lead to, with defaults. The lock is released while a
// webhook is called.
func (s *Server) mutate(w *write, obj, old client.Object) (client.Object, error) {
	var again []invocation
	for i := range s.hooks {
		call, matches := s.invocationOf(w, &s.hooks[i], obj, old)
		if !matches || !call.hook.Mutating {
			continue
		}
		changed, err := s.mutateBy(w, call, obj, old)
		if err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(changed, obj) {
			for _, earlier := range again {
				if changed, err = s.mutateBy(w, earlier, changed, old); err != nil {
					return nil, err
				}
			}
		}
		obj = changed
		if call.hook.Reinvoke {
			again = append(again, call)
		}
	}
	return obj, nil
}

// mutateBy calls one mutating webhook for an object, and returns the object that it leads to.
func (s *Server) mutateBy(w *write, call invocation, obj, old client.Object) (client.Object, error) {
	request, err := s.reviewOf(w, call, obj, old)
	if err != nil {
		return nil, err
	}
	patch, err := s.review(call.hook, request)
	if err != nil || len(patch) == 0 {
		return obj, err
	}
	if request.Object == nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", call.hook.Name))
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: received undecodable patch in webhook response: %w", call.hook.Name, err))
	}
	content, err := operations.Apply(request.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	changed, err := call.kind.Strategy.Decode(content, false)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	call.kind.Strategy.SetDefaults(changed)
	return s.convertTo(w.kind, changed)
}

// validate calls the validating webhooks for an object. The lock is released while a webhook is called.
func (s *Server) validate(w *write, obj, old client.Object) error {
	for i := range s.hooks {
		call, matches := s.invocationOf(w, &s.hooks[i], obj, old)
		if !matches || call.hook.Mutating {
			continue
		}
		request, err := s.reviewOf(w, call, obj, old)
		if err != nil {
			return err
		}
		if _, err := s.review(call.hook, request); err != nil {
			return err
		}
	}
	return nil
}

// review calls a webhook. The webhook may send requests to this server, so the lock is released during the call.
func (s *Server) review(h *webhook.Hook, r *webhook.Request) ([]byte, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.webhooks.Review(h, r)
}

// Reviews reports whether a webhook has a rule for writes of a kind or its subresource. If ignored is true, only webhooks with the failure
// policy Ignore count. Reviews does not look at the selectors of the webhooks, which may still leave out an object.
func (s *Server) Reviews(gvk schema.GroupVersionKind, subresource string, ignored bool) bool {
	k := s.kinds.find(gvk)
	return k != nil && s.reviews(k, subresource, ignored)
}

func (s *Server) reviews(k *kind.Kind, subresource string, ignored bool) bool {
	for i := range s.hooks {
		if h := &s.hooks[i]; ignored && !h.Ignore {
			continue
		}
		for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
			if versionFor(&write{kind: k, key: anyKey(k), operation: operation, subresource: subresource}, &s.hooks[i]) != nil {
				return true
			}
		}
	}
	return false
}

// anyKey returns a key of an object of the kind, for checks in which the name makes no difference.
func anyKey(k *kind.Kind) client.ObjectKey { return k.Key("any", "any") }

// versionFor returns the kind in the version in which a webhook gets a write. If the webhook has no rule for the write, it returns nil.
func versionFor(w *write, h *webhook.Hook) *kind.Kind {
	versions := []*kind.Kind{w.kind}
	if h.Equivalent && w.kind.Versions != nil {
		versions = append(versions, w.kind.Versions.Served...)
	}
	for _, k := range versions {
		attributes := admission.NewAttributesRecord(nil, nil, k.GVK, namespaceOf(w), w.key.Name, k.Resource, w.subresource, w.operation, nil, w.options.dryRun, nil)
		for _, rule := range h.Rules {
			if m := (rules.Matcher{Rule: rule, Attr: attributes}); m.Matches() {
				return k
			}
		}
	}
	return nil
}

// invocationOf returns how a webhook is called for a write. It returns false if the webhook is not called.
func (s *Server) invocationOf(w *write, h *webhook.Hook, obj, old client.Object) (invocation, bool) {
	if !s.admits || w.options.internal || w.subresource == kind.ScaleSubresource || !s.selects(w, h, obj, old) {
		return invocation{}, false
	}
	k := versionFor(w, h)
	return invocation{hook: h, kind: k}, k != nil
}

// namespaceOf returns the namespace of a write. For a write of a namespace, that is its own name.
func namespaceOf(w *write) string {
	if w.kind.GVK == namespaces {
		return w.key.Name
	}
	return w.key.Namespace
}

// selects reports whether the selectors of a webhook select the object of a write.
func (s *Server) selects(w *write, h *webhook.Hook, obj, old client.Object) bool {
	hasLabels := func(selector labels.Selector, object client.Object) bool {
		return object != nil && selector.Matches(labels.Set(object.GetLabels()))
	}
	if !h.Objects.Empty() && !hasLabels(h.Objects, obj) && !hasLabels(h.Objects, old) {
		return false
	}
	if h.Namespaces.Empty() || namespaceOf(w) == "" {
		return true
	}
	if w.kind.GVK == namespaces {
		return hasLabels(h.Namespaces, obj) || obj == nil && hasLabels(h.Namespaces, old)
	}
	space := s.store.find(s.kinds.find(namespaces), client.ObjectKey{Name: w.key.Namespace})
	return space != nil && hasLabels(h.Namespaces, space.object)
}

// reviewOf returns the request that a webhook gets about a write.
func (s *Server) reviewOf(w *write, call invocation, obj, old client.Object) (*webhook.Request, error) {
	r := &webhook.Request{
		Kind: call.kind.GVK, RequestKind: w.kind.GVK, Resource: call.kind.Resource, RequestResource: w.kind.Resource, Subresource: w.subresource,
		Namespace: namespaceOf(w), Name: w.key.Name, Operation: admissionv1.Operation(w.operation), DryRun: w.options.dryRun,
	}
	var err error
	if r.Object, err = s.reviewed(call.kind, obj); err != nil {
		return nil, err
	}
	if r.OldObject, err = s.reviewed(call.kind, old); err != nil {
		return nil, err
	}
	options := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": map[admission.Operation]string{
		admission.Create: "CreateOptions", admission.Update: "UpdateOptions", admission.Delete: "DeleteOptions",
	}[w.operation]}
	if w.operation != admission.Delete {
		options["fieldManager"] = w.options.manager
	}
	if w.options.dryRun {
		options["dryRun"] = []string{metav1.DryRunAll}
	}
	r.Options, err = json.Marshal(options)
	return r, err
}

// reviewed returns an object as JSON in the version of the kind, as a webhook gets it. For a nil object it returns nil.
func (s *Server) reviewed(k *kind.Kind, object client.Object) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	converted, err := s.convertTo(k, object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	content, err := k.Strategy.Encode(converted)
	if err != nil {
		return nil, err
	}
	shown := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(content, &shown.Object); err != nil {
		return nil, err
	}
	shown.SetGroupVersionKind(k.GVK)
	return utiljson.Marshal(shown.Object)
}
