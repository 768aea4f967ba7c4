package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile/secrets"
)

// The value is printed as (hidden). Convert it only where you use it.
func ExampleRead() {
	ctx := context.Background()
	c := fake.NewFakeClient(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "77aa", ResourceVersion: "12"},
		Data:       map[string][]byte{"password": []byte("secret")},
	})
	selector := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password"}
	value, version, err := secrets.Read(ctx, c, "shop", selector)
	fmt.Println(value, len(string(value)), version, err)

	selector.Key = "token"
	_, _, err = secrets.Read(ctx, c, "shop", selector)
	missing, ok := errors.AsType[*secrets.Error](err)
	fmt.Println(ok, missing)
	// Output:
	// (hidden) 6 77aa/12 <nil>
	// true Secret shop/db has no key "token"
}

// The version is read from the cache, without a request. Read the value only if the version differs from the version that
// was used last.
func ExampleVersion() {
	c := fake.NewFakeClient(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "77aa", ResourceVersion: "12"}})
	selector := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password"}
	fmt.Println(secrets.Version(context.Background(), c, "shop", selector))
	// Output: 77aa/12 <nil>
}

// A step checks the certificate of a server. It returns the error, and the reason of the error becomes the reason of the
// step's condition.
func ExampleCheckTLS() {
	named := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	c := fake.NewFakeClient(&corev1.Secret{ObjectMeta: named, Data: map[string][]byte{corev1.TLSCertKey: []byte("not yet issued")}})
	_, _, err := secrets.CheckTLS(context.Background(), c, client.ObjectKey{Namespace: "shop", Name: "web"}, time.Now(), "web.shop.svc")
	if failure, ok := errors.AsType[*secrets.Error](err); ok {
		reason, _ := failure.Waiting()
		fmt.Println(reason)
	}
	fmt.Println(err)
	// Output:
	// SecretKeyNotFound
	// Secret shop/web has no key "tls.key"
}
