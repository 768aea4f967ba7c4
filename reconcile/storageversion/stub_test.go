package storageversion

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// stub answers the requests of a migrator. It has a CustomResourceDefinition, some object names, and perhaps a
// StorageVersionMigration.
type stub struct {
	crd       apiextensionsv1.CustomResourceDefinition
	objects   []string
	migration *unstructured.Unstructured
	answer    func(request string) error // returns the answer to a request such as "patch w1"; nil is a success
	requests  []string                   // without the requests for the CustomResourceDefinition
}

// newStub returns a stub with these objects. They may be stored in v1alpha1.
func newStub(objects ...string) *stub {
	s := &stub{objects: objects, answer: func(string) error { return nil }}
	s.crd.Name, s.crd.UID, s.crd.Generation = "widgets.example.com", "1", 2
	s.crd.Spec.Group, s.crd.Spec.Names = "example.com", apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", Plural: "widgets"}
	s.crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1alpha1", Served: true},
		{Name: "v1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}},
	}
	s.crd.Status.StoredVersions = []string{"v1alpha1", "v1"}
	return s
}

func (s *stub) request(format string, args ...any) error {
	request := fmt.Sprintf(format, args...)
	s.requests = append(s.requests, request)
	return s.answer(request)
}

func (s *stub) get(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if u, ok := object.(*unstructured.Unstructured); ok && u.GetKind() == "CustomResourceDefinition" {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.crd)
		u.Object = content
		return err
	}
	if err := s.request("get %s", key.Name); err != nil {
		return err
	}
	switch object := object.(type) {
	case *metav1.PartialObjectMetadata:
		object.Name = key.Name
	case *unstructured.Unstructured:
		if s.migration == nil {
			return apierrors.NewNotFound(schema.GroupResource{Group: migrationKind.Group}, key.Name)
		}
		s.migration.DeepCopyInto(object)
	}
	return nil
}

func (s *stub) list(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
	if err := s.request("list %s", list.GetObjectKind().GroupVersionKind().Version); err != nil {
		return err
	}
	page := list.(*metav1.PartialObjectMetadataList)
	for _, name := range s.objects {
		page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return nil
}

func (s *stub) patchStatus(_ context.Context, _ client.Client, _ string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if object.GetName() != s.crd.Name {
		return s.request("patch %s", object.GetName())
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &struct {
		Status *apiextensionsv1.CustomResourceDefinitionStatus `json:"status"`
	}{&s.crd.Status})
}

// client returns a client of the stub.
func (s *stub) client() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: s.get, List: s.list, SubResourcePatch: s.patchStatus,
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			return s.request("create %s", object.GetName())
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			return s.request("delete %s", object.GetName())
		},
	})
}

// migrator returns a migrator of the stub's kind. served says whether the cluster serves Kubernetes' own migration.
func (s *stub) migrator(t *testing.T, served bool) *migrator {
	t.Helper()
	kind := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: kind.Group, Version: "v1"}, {Group: migrationKind.Group, Version: "v1"}})
	mapper.Add(kind.WithVersion("v1"), meta.RESTScopeNamespace)
	if served {
		mapper.Add(migrationKind.WithVersion("v1"), meta.RESTScopeRoot)
	}
	metrics, err := newMetrics(prometheus.NewRegistry(), kind.String())
	require.NoError(t, err)
	return &migrator{
		kind: kind, mapper: mapper, reader: s.client(), writer: s.client(), log: logr.Discard(), clock: clock.RealClock{}, metrics: metrics,
		limiter: rate.NewLimiter(rate.Inf, 1), conversions: conversions{converts: func() bool { return false }}, settle: settleTime, pageSize: defaultPageSize,
	}
}

// migrationOf returns a successful StorageVersionMigration of this package.
func (s *stub) migrationOf(created time.Time) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": "True"}}}}}
	u.SetName(s.crd.Name)
	u.SetLabels(map[string]string{managedBy: us})
	u.SetCreationTimestamp(metav1.NewTime(created))
	return u
}

// takeRequests returns the requests since the last call.
func (s *stub) takeRequests() []string {
	requests := slices.Clone(s.requests)
	s.requests = nil
	return requests
}
