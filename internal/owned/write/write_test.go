package write

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An API server of an older version does not know the field.
func TestUnknownFieldAsInvalid(t *testing.T) {
	err := unknownFieldAsInvalid(apierrors.NewInternalError(errors.New(`failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.new: field not declared in schema`)))
	require.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, ".spec.new: field not declared in schema")
	other := apierrors.NewInternalError(errors.New("etcd is full"))
	require.Same(t, other, unknownFieldAsInvalid(other), "other errors of the server stay as they are")
}

func TestWithoutValues(t *testing.T) {
	for name, tc := range map[string]struct{ reason, message, want string }{
		"an object": {
			"its values may be secret", `spec.template: Invalid value: {"env":[{"value":"canary"}]}: field is immutable`, `spec.template: Invalid value: {…}: field is immutable`,
		},
		"an environment variable": {
			"its value may be secret", `spec.env[0].value: Invalid value: "canary \"1\"": spec.env[0].value in body should match '^a$'`,
			`spec.env[0].value: Invalid value: "(hidden)": spec.env[0].value in body should match '^a$'`,
		},
		"one that is an object":  {"it is quoted as JSON", `spec.env[0]: Invalid value: {"name":"a","value":"canary"}: wrong`, `spec.env[0]: Invalid value: {…}: wrong`},
		"one with a brace":       {"the brace belongs to the value", `spec.env[0].value: Invalid value: "canary{1": wrong {1}`, `spec.env[0].value: Invalid value: "(hidden)": wrong {…}`},
		"one of a map":           {"its name is the key", `spec.extraEnv.PASSWORD: Unsupported value: "canary": supported values: "a"`, `spec.extraEnv.PASSWORD: Unsupported value: "(hidden)": supported values: "a"`},
		"a name":                 {"a name is not secret, and says what to mend", `spec.env[0].name: Invalid value: "A=B": wrong`, `spec.env[0].name: Invalid value: "A=B": wrong`},
		"a reference":            {"the same", `spec.env[0].valueFrom.secretKeyRef.key: Invalid value: "a b": wrong`, `spec.env[0].valueFrom.secretKeyRef.key: Invalid value: "a b": wrong`},
		"a variable called name": {"its value is hidden", `spec.env.name: Invalid value: "canary": wrong`, `spec.env.name: Invalid value: "(hidden)": wrong`},
		"a number":               {"it has no quotes", `spec.env[0].value: Invalid value: 4711: wrong`, `spec.env[0].value: Invalid value: "(hidden)": wrong`},
		"another field":          {"it is needed to find the mistake", `spec.type: Invalid value: "One": wrong`, `spec.type: Invalid value: "One": wrong`},
		"a brace that is alone":  {"nothing is quoted", `a } and a {`, `a } and a {`},
		"no value":               {"nothing is taken out", `not found`, `not found`},
	} {
		t.Run(name, func(t *testing.T) {
			err := WithoutValues(apierrors.NewBadRequest(tc.message))
			require.Equal(t, tc.want, err.Error(), tc.reason)
			require.True(t, apierrors.IsBadRequest(err))
		})
	}
}

func TestWithSizeRemedy(t *testing.T) {
	for _, err := range []error{
		errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max"),
		errors.New("etcdserver: request is too large"),
		apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	} {
		require.ErrorIs(t, WithSizeRemedy(err), err)
		require.ErrorContains(t, WithSizeRemedy(err), "split the object")
	}
	other := errors.New("etcdserver: leader changed")
	require.Equal(t, other, WithSizeRemedy(other))
	require.NoError(t, WithSizeRemedy(nil))
}
