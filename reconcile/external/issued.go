package external

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/internal/record"
)

// mark is an annotation of a Secret that identifies the values of the last issue. Without the mark, a Secret may have other values: from
// another thing, from an earlier issue, from a process that was the leader before, from a backup, or from a person.
type mark struct {
	published string // a random name of the write
	sum       string // a hash of the values. The key of the hash is in the status, so the metadata of the Secret alone reveals nothing about the values
}

func (m mark) String() string { return m.published + ":" + m.sum }

func markOf(secret *corev1.Secret) (m mark) {
	m.published, m.sum, _ = strings.Cut(secret.Annotations[record.Issued], ":")
	return m
}

// isIssuing reports whether an issue has begun, and no Secret is known to have its values.
func (r *Record) isIssuing() bool { return r.Issued != "" && r.Published == "" }

// hasIssued reports whether a Secret has the values of the last issue. If the write of the Secret is not recorded, any write of the last
// issue counts.
func (r *Record) hasIssued(secret *corev1.Secret, keys []string) bool {
	m := markOf(secret)
	return r.Issued != "" && m.published != "" && (r.isIssuing() || m.published == r.Published) && m.sum == r.sumOf(secret, keys)
}

func (r *Record) sumOf(secret *corev1.Secret, keys []string) string {
	h := hmac.New(sha256.New, []byte(r.Issued))
	for _, key := range keys {
		_, _ = fmt.Fprintf(h, "%q %q\n", key, secret.Data[key]) // a hash does not return an error
	}
	return hex.EncodeToString(h.Sum(nil))
}
