package ratcheting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/opblocks/opblocks/reconcile/ratcheting"
)

// validator refuses the values "bad" and "worse", and warns about the value "odd".
var validator = ratcheting.Validator[*corev1.ConfigMap]{
	Validate: func(m *corev1.ConfigMap) (errs field.ErrorList) {
		for _, key := range []string{"a", "b"} {
			if value := m.Data[key]; value == "bad" || value == "worse" {
				errs = append(errs, field.Invalid(field.NewPath("data", key), value, "write good"))
			}
		}
		return errs
	},
	Warn: func(m *corev1.ConfigMap) (warnings []string) {
		if m.Data["a"] == "odd" {
			warnings = append(warnings, "data.a: write even")
		}
		return warnings
	},
}

var _ admission.Validator[*corev1.ConfigMap] = validator

const (
	badA   = `data.a: Invalid value: "bad": write good`
	worseA = `data.a: Invalid value: "worse": write good`
	badB   = `data.b: Invalid value: "bad": write good`
)

func configMap(a, b string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Data: map[string]string{"a": a, "b": b}}
}

func deleted(m *corev1.ConfigMap) *corev1.ConfigMap {
	m.DeletionTimestamp = new(metav1.Now())
	return m
}

func TestCreate(t *testing.T) {
	tests := map[string]struct {
		reason   string
		obj      *corev1.ConfigMap
		refused  []string
		warnings admission.Warnings
	}{
		"Valid":   {"nothing is wrong", configMap("good", "good"), nil, nil},
		"Invalid": {"each error is returned", configMap("bad", "bad"), []string{badA, badB}, nil},
		"Warning": {"it is valid", configMap("odd", "good"), nil, admission.Warnings{"data.a: write even"}},
		"Both":    {"the error is what to read", configMap("odd", "bad"), []string{badB}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			warnings, err := validator.ValidateCreate(t.Context(), tc.obj)
			check(t, tc.reason, warnings, err, tc.warnings, tc.refused)
		})
	}
}

func TestUpdate(t *testing.T) {
	tests := map[string]struct {
		reason   string
		old, now *corev1.ConfigMap
		refused  []string
		warnings admission.Warnings
	}{
		"Untouched":   {"somebody changes a label of an object that was valid once", configMap("bad", "good"), configMap("bad", "good"), nil, admission.Warnings{badA}},
		"Corrected":   {"nothing is wrong any more", configMap("bad", "good"), configMap("good", "good"), nil, nil},
		"OneOfTwo":    {"fields can be corrected one at a time", configMap("bad", "bad"), configMap("good", "bad"), nil, admission.Warnings{badB}},
		"Added":       {"it was valid", configMap("good", "good"), configMap("bad", "good"), []string{badA}, nil},
		"OtherField":  {"the field was valid", configMap("bad", "good"), configMap("bad", "bad"), []string{badB}, nil},
		"OtherValue":  {"the user has touched the field", configMap("bad", "good"), configMap("worse", "good"), []string{worseA}, nil},
		"Warning":     {"it is valid", configMap("good", "good"), configMap("odd", "good"), nil, admission.Warnings{"data.a: write even"}},
		"KeptAndOdd":  {"both are returned", configMap("odd", "bad"), configMap("odd", "bad"), nil, admission.Warnings{badB, "data.a: write even"}},
		"Deleted":     {"a finalizer is removed", configMap("bad", "good"), deleted(configMap("bad", "good")), nil, nil},
		"DeletedSpec": {"what is changed has no effect any more", configMap("good", "good"), deleted(configMap("worse", "bad")), nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			warnings, err := validator.ValidateUpdate(t.Context(), tc.old, tc.now)
			check(t, tc.reason, warnings, err, tc.warnings, tc.refused)
		})
	}
}

func TestDelete(t *testing.T) {
	warnings, err := validator.ValidateDelete(t.Context(), configMap("bad", "bad"))
	check(t, "what is invalid can be deleted", warnings, err, nil, nil)
}

// check compares an answer with the expected warnings and errors.
func check(t *testing.T, reason string, warnings admission.Warnings, err error, want admission.Warnings, refused []string) {
	t.Helper()
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("%s: warnings: -want +got:\n%s", reason, diff)
	}
	if err == nil && refused == nil {
		return
	}
	if !apierrors.IsInvalid(err) {
		t.Fatalf("%s: the error is %v", reason, err)
	}
	var causes []string
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	if diff := cmp.Diff(refused, causes); diff != "" {
		t.Errorf("%s: errors: -want +got:\n%s", reason, diff)
	}
}

// TestName proves that the error has the kind of the request, because a decoded object has no kind.
func TestName(t *testing.T) {
	ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Shop"},
	}})
	_, err := validator.ValidateCreate(ctx, configMap("bad", ""))
	if want := `Shop.shop.example.com "web" is invalid: ` + badA; err == nil || err.Error() != want {
		t.Errorf("the error is %v, and not %s", err, want)
	}
	named := configMap("bad", "")
	named.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	_, err = validator.ValidateCreate(t.Context(), named)
	if want := `ConfigMap "web" is invalid: ` + badA; err == nil || err.Error() != want {
		t.Errorf("the error is %v, and not %s", err, want)
	}
}
