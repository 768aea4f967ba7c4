package ownedresources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// Shop is the kind of the owner in all tests of this package.
type (
	Shop     = testkinds.Shop
	ShopSpec = testkinds.ShopSpec
	ShopList = testkinds.ShopList
)

// shopsFile has the CustomResourceDefinition of the kind.
const shopsFile = "../internal/owned/testkinds/shops.yaml"

func init() { testkinds.AddShop(scheme.Scheme) }

// newShop returns the Shop that most tests use, edited by the functions.
func newShop(edit ...func(*ShopSpec)) *Shop {
	s := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for _, e := range edit {
		e(&s.Spec)
	}
	return s
}
