package reconciletest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// shortestSecret is the length from which on a value of a Secret is looked for elsewhere. Shorter
// ones stand in other objects by chance.
const shortestSecret = 8

// public are keys of Secrets whose values are no secret.
var public = []string{
	"username", "user", "host", "hostname", "port", "database", "dbname", "endpoint",
	corev1.TLSCertKey, corev1.ServiceAccountRootCAKey, corev1.ServiceAccountNamespaceKey,
}

func isSecretValue(key string, value []byte) bool {
	return len(value) >= shortestSecret && !slices.Contains(public, strings.ToLower(key))
}

func (r *run) hasSecrets() bool {
	for key := range r.present {
		if key.kind.Kind == "Secret" {
			return true
		}
	}
	return false
}

// leak looks for the values of Secrets in what the operator wrote.
func (r *run) leak(c *memoryserver.Change) error {
	if c.New == nil || c.GVK.Kind == "Secret" {
		return nil
	}
	for _, obj := range r.present {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		for key, value := range secret.Data {
			if !isSecretValue(key, value) {
				continue
			}
			if path := findIn(c.New, value); path != "" && (c.Old == nil || findIn(c.Old, value) == "") {
				return fmt.Errorf("the value of key %q in Secret %s stands in %s of %s %s", key, secret.Name, path, c.GVK.Kind, nameOf(c.Key))
			}
		}
	}
	return nil
}

// leakIn looks for them in a text.
func (r *run) leakIn(what, text string) error {
	for _, obj := range r.present {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		for key, value := range secret.Data {
			if isSecretValue(key, value) && has(text, value) {
				return fmt.Errorf("the value of key %q in Secret %s stands in %s", key, secret.Name, what)
			}
		}
	}
	return nil
}

func findIn(obj runtime.Object, value []byte) (path string) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return ""
	}
	return find("", content, value)
}

func find(path string, v any, value []byte) string {
	switch v := v.(type) {
	case string:
		if has(v, value) {
			return path
		}
	case map[string]any:
		for key, e := range v {
			if key == "managedFields" {
				continue
			}
			if found := find(join(path, key), e, value); found != "" {
				return found
			}
		}
	case []any:
		for i, e := range v {
			if found := find(fmt.Sprintf("%s[%s]", path, elementName(i, e)), e, value); found != "" {
				return found
			}
		}
	}
	return ""
}

func has(text string, value []byte) bool {
	return strings.Contains(text, string(value)) || strings.Contains(text, base64.StdEncoding.EncodeToString(value))
}
