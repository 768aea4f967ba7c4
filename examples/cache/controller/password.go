package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
)

const (
	passwordKey    = "password"
	saltKey        = "salt" // the key of the salt that passwordHash uses
	passwordLength = 32
)

// passwordSecret returns the Secret with the password of a Cache, whose values are generated.
func passwordSecret(c *storev1alpha1.Cache) *corev1.Secret {
	s := ownedresources.NewSecret(c, nil)
	s.Name = passwordSecretName(c)
	return s
}

func passwordSecretName(c *storev1alpha1.Cache) string { return c.Name + "-password" }

// passwordVersion returns the trigger of a new password.
func passwordVersion(c *storev1alpha1.Cache) string { return c.Spec.PasswordVersion }

// passwordHash returns a hash that changes with the password, so that the pods are replaced, and with nothing else. Who can read
// it on a pod cannot check a guess against it: its key is in the Secret, too.
func passwordHash(secret *corev1.Secret) string {
	hash := hmac.New(sha256.New, secret.Data[saltKey])
	hash.Write(secret.Data[passwordKey])
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// passwordVariable is an environment variable with the password.
func passwordVariable(c *storev1alpha1.Cache, name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: passwordSecretName(c)}, Key: passwordKey,
	}}}
}
