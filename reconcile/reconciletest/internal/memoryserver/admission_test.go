package memoryserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manifest is the configuration of a webhook at /hook. Its placeholders are the kind of the configuration, the side effects, and further
// fields of the webhook.
const manifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: KIND
metadata: {name: hooks}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: hooks, namespace: system, path: /hook}}
  sideEffects: EFFECTS
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: ["*"], resources: [gadgets]}]
  FIELDS
`

// hookedClient returns a client of a server with one webhook, which is served by handle.
func hookedClient(t *testing.T, kind, effects, fields string, handle http.HandlerFunc) (*Server, client.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer("KIND", kind, "EFFECTS", effects, "FIELDS", fields).Replace(manifest)), 0o600))
	s, err := New(testScheme, CRDs("testdata/gadgets.yaml"), Webhooks(file))
	require.NoError(t, err)
	handlers := http.NewServeMux()
	handlers.Handle("/hook", handle)
	s.ServeWebhooks(handlers)
	s.AdmitByWebhooks()
	return s, s.Client()
}

// answering returns a handler that gives the same answer to each review. It also returns the list to which the handler adds the requests.
func answering(answer admissionv1.AdmissionResponse) (http.HandlerFunc, *[]*admissionv1.AdmissionRequest) {
	var asked []*admissionv1.AdmissionRequest
	return func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			panic(err)
		}
		asked = append(asked, review.Request)
		made := answer
		made.UID = review.Request.UID
		review.Request, review.Response = nil, &made
		if err := json.NewEncoder(w).Encode(&review); err != nil {
			panic(err)
		}
	}, &asked
}

func gadget(kind string, spec map[string]any) *unstructured.Unstructured {
	u := newObject(kind)
	u.SetNamespace("default")
	u.SetName("a")
	u.Object["spec"] = spec
	return u
}

// If a webhook refuses a write, or cannot be called, the write is refused with the text of the real API server.
func TestWebhookRefuses(t *testing.T) {
	denied, _ := answering(admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "not on a Friday"}})
	changes, _ := answering(admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[]`), PatchType: new(admissionv1.PatchTypeJSONPatch)})
	tests := map[string]struct {
		reason string
		kind   string // the object's kind and version; "": Gadget
		fields string
		dryRun bool // the webhook has side effects, and the write is a dry run
		handle http.HandlerFunc
		code   int32 // 0: the object is stored
		says   string
	}{
		"Denied": {
			reason: "The status of the webhook is the status of the answer.", handle: denied,
			code: http.StatusForbidden, says: `admission webhook "hook.example.com" denied the request: not on a Friday`,
		},
		"DeniedThoughIgnored": {
			reason: "The failure policy is for webhooks that cannot be called.", fields: "failurePolicy: Ignore", handle: denied,
			code: http.StatusForbidden, says: `denied the request`,
		},
		"Panic": {
			reason: "The server of the operator closes the connection.", handle: func(http.ResponseWriter, *http.Request) { panic("oh") },
			code: http.StatusInternalServerError, says: `failed calling webhook "hook.example.com": failed to call webhook: Post "https://hooks.system.svc:443/hook?timeout=10s": EOF`,
		},
		"PanicIgnored": {
			reason: "It is passed over.", fields: "failurePolicy: Ignore", handle: func(http.ResponseWriter, *http.Request) { panic("oh") },
		},
		"Status500": {
			reason: "What is not a review has no decision.", fields: "timeoutSeconds: 3", handle: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) },
			code: http.StatusInternalServerError, says: `an error on the server ("broken") has prevented the request from succeeding`,
		},
		"PatchOfAValidatingWebhook": {
			reason: "It may not change anything.", handle: changes,
			code: http.StatusInternalServerError, says: "received invalid webhook response: validating webhook may not return response.patch",
		},
		"DryRunWithSideEffects": {
			reason: "The webhook cannot be asked.", dryRun: true, handle: denied,
			code: http.StatusBadRequest, says: `admission webhook "hook.example.com" does not support dry run`,
		},
		"ObjectSelector":    {reason: "The object lacks the label.", fields: "objectSelector: {matchLabels: {a: b}}", handle: denied},
		"NamespaceSelector": {reason: "The namespace lacks the label.", fields: "namespaceSelector: {matchLabels: {a: b}}", handle: denied},
		"Exact":             {reason: "The request is in another version than the rule.", kind: "Gadget.v1beta1", fields: "matchPolicy: Exact", handle: denied},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			effects, options := "None", []client.CreateOption(nil)
			if test.dryRun {
				effects, options = "Some", []client.CreateOption{client.DryRunAll}
			}
			_, c := hookedClient(t, "ValidatingWebhookConfiguration", effects, test.fields, test.handle)
			err := c.Create(t.Context(), gadget(cmp.Or(test.kind, "Gadget"), nil), options...)
			if test.code == 0 {
				require.NoError(t, err, test.reason)
				return
			}
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status, test.reason)
			assert.Equal(t, test.code, status.Status().Code, test.reason)
			assert.Contains(t, err.Error(), test.says, test.reason)
		})
	}
}

// A mutating webhook gets the object in the version of its rule, and its patch is stored with defaults.
func TestWebhookMutates(t *testing.T) {
	handle, asked := answering(admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(`[{"op": "add", "path": "/spec", "value": {"note": "n"}}]`)})
	_, c := hookedClient(t, "MutatingWebhookConfiguration", "None", "", handle)
	made := gadget("Gadget.v1beta1", map[string]any{"label": "l"})
	require.NoError(t, c.Create(t.Context(), made))
	assert.Equal(t, map[string]any{"replicas": int64(1), "color": "red", "note": "n"}, made.Object["spec"], "The defaults are those of the webhook's version.")
	require.Len(t, *asked, 1)
	first := (*asked)[0]
	assert.Equal(t, []string{"v1", "v1beta1", "CREATE"}, []string{first.Kind.Version, first.RequestKind.Version, string(first.Operation)})

	made.Object["status"] = map[string]any{"message": "m"}
	require.NoError(t, c.Status().Update(t.Context(), made))
	assert.Len(t, *asked, 1, "The rule has no subresource.")
}

// For a deletion, a webhook gets the stored object.
func TestWebhookOfDeletions(t *testing.T) {
	handle, asked := answering(admissionv1.AdmissionResponse{Allowed: true})
	_, c := hookedClient(t, "ValidatingWebhookConfiguration", "None", "", handle)
	made := gadget("Gadget", nil)
	require.NoError(t, c.Create(t.Context(), made))
	require.NoError(t, c.Delete(t.Context(), made))
	last := (*asked)[len(*asked)-1]
	assert.Equal(t, admissionv1.Delete, last.Operation)
	assert.Empty(t, last.Object.Raw)
	assert.NotEmpty(t, last.OldObject.Raw)
}

// A webhook may read and write through the same server. If it changes the object of the write, the write begins again.
func TestWebhookSendsRequests(t *testing.T) {
	var c client.Client
	allow, _ := answering(admissionv1.AdmissionResponse{Allowed: true})
	updates := 0
	_, c = hookedClient(t, "ValidatingWebhookConfiguration", "None", "", func(w http.ResponseWriter, r *http.Request) {
		now := newObject("Gadget")
		if err := c.Get(r.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, now); err == nil && updates == 0 {
			updates++
			if err := c.Patch(r.Context(), now, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"by":"webhook"}}}`))); err != nil {
				panic(err)
			}
		}
		allow(w, r)
	})
	made := gadget("Gadget", nil)
	require.NoError(t, c.Create(t.Context(), made))
	require.NoError(t, c.Patch(t.Context(), made, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"note":"n"}}`))))
	assert.Equal(t, map[string]string{"by": "webhook"}, made.GetLabels())
	note, _, _ := unstructured.NestedString(made.Object, "spec", "note")
	assert.Equal(t, "n", note)
}
