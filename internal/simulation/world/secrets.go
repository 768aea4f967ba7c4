package world

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/request"
)

// minSecretLength is the smallest length, in bytes, of a Secret's value that is looked for elsewhere. Shorter values appear
// in other objects by chance.
const minSecretLength = 8

// publicKeys are keys of Secrets, in lower case, whose values are not secret.
var publicKeys = []string{
	"username", "user", "host", "hostname", "port", "database", "dbname", "endpoint",
	corev1.TLSCertKey, corev1.ServiceAccountRootCAKey, corev1.ServiceAccountNamespaceKey,
}

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
	return fmt.Errorf("the value of key %q in Secret %s appears in %s", v.key, v.secret, where)
}

// secretValuesOf returns the secret values of the Secrets among the objects.
func secretValuesOf(objects map[request.ObjectID]client.Object) []secretValue {
	var values []secretValue
	for _, obj := range objects {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		for key, value := range secret.Data {
			if len(value) >= minSecretLength && !slices.Contains(publicKeys, strings.ToLower(key)) {
				values = append(values, secretValue{secret.Name, key, string(value), base64.StdEncoding.EncodeToString(value)})
			}
		}
	}
	slices.SortFunc(values, func(a, b secretValue) int { return cmp.Or(cmp.Compare(a.secret, b.secret), cmp.Compare(a.key, b.key)) })
	return values
}
