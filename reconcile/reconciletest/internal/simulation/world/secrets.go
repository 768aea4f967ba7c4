package world

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// minSecretLength is the smallest length, in bytes, of a Secret's value that is searched for in other objects. Shorter values occur there
// by chance.
const minSecretLength = 8

// publicKeys are keys of Secrets, in lower case, whose values are not secret. Some are keys of the specification of Service Bindings.
var publicKeys = []string{
	"username", "user", "host", "hostname", "port", "database", "dbname", "endpoint", "type", "provider", "certificates",
	corev1.TLSCertKey, corev1.ServiceAccountRootCAKey, corev1.ServiceAccountNamespaceKey,
}

// bindingWords are keys of the specification of Service Bindings that are as long as minSecretLength or longer. If the value of a Secret is
// such a word, it is a name, and occurs elsewhere by chance.
var bindingWords = []string{"username", "password", "provider", "certificates", "private-key"}

// secretValue is a value that must not appear outside of Secrets.
type secretValue struct {
	secret, key   string
	text, encoded string // the value as it is, and in base64
}

// occursIn reports whether the text contains the value, as it is or in base64.
func (v *secretValue) occursIn(text string) bool {
	return strings.Contains(text, v.text) || strings.Contains(text, v.encoded)
}

func (v *secretValue) leakedTo(where string) error {
	return failure.Finding{Kind: kinds.LeaksSecret, Err: fmt.Errorf("the value of key %q in Secret %s appears in %s\n"+
		"If it is not secret, add the path data.%[1]s of Secret to Ignore.Fields", v.key, v.secret, where)}
}

// secretValuesOf returns the secret values of the Secrets among the objects. A key that ignore removes is not secret. ignore may be nil.
func secretValuesOf(objects map[request.ObjectID]client.Object, ignore func(*unstructured.Unstructured)) []secretValue {
	var values []secretValue
	for _, obj := range objects {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		kept := keysLeftBy(ignore, secret)
		for key, value := range secret.Data {
			if len(value) < minSecretLength || slices.Contains(publicKeys, strings.ToLower(key)) || slices.Contains(bindingWords, string(value)) || !kept(key) {
				continue
			}
			values = append(values, secretValue{secret.Name, key, string(value), base64.StdEncoding.EncodeToString(value)})
		}
	}
	slices.SortFunc(values, func(a, b secretValue) int { return cmp.Or(cmp.Compare(a.secret, b.secret), cmp.Compare(a.key, b.key)) })
	return values
}

// keysLeftBy returns a function that reports whether ignore leaves a key of the Secret.
func keysLeftBy(ignore func(*unstructured.Unstructured), secret *corev1.Secret) func(key string) bool {
	if ignore == nil {
		return func(string) bool { return true }
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return func(string) bool { return true }
	}
	u := &unstructured.Unstructured{Object: content}
	ignore(u)
	left, _, _ := unstructured.NestedFieldNoCopy(u.Object, "data")
	keys, _ := left.(map[string]any)
	return func(key string) bool { _, found := keys[key]; return found }
}
