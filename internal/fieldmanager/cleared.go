package fieldmanager

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/record"
)

// BeforeFirstApply is a field manager. If an object has no managed fields, the API server adds an entry with this manager at the first
// server-side apply. The entry owns all fields that the object had before.
const BeforeFirstApply = "before-first-apply"

// AreCleared reports whether somebody has cleared the managed fields of a child after it was applied, and other entries have been written
// since. The operator that owns the child needs these other entries to find out which fields are its own.
func AreCleared(obj metav1.Object) bool {
	if !strings.HasPrefix(obj.GetAnnotations()[record.Applied], string(record.ByApply)) {
		return false
	}
	entries := obj.GetManagedFields()
	cleared := len(entries) > 0
	for _, entry := range entries {
		switch {
		case entry.Manager == BeforeFirstApply && entry.Subresource == "":
			return true
		case entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil &&
			strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+record.Applied+`"`):
			cleared = false
		}
	}
	return cleared
}
