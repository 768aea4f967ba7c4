package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	memcachedToShop = &renaming{
		from: &names{packages: modulePath + "/memcached", kind: "Memcached", lower: "memcached", plural: "memcacheds", group: "cache.example.com",
			version: "v1alpha1", alias: "cachev1alpha1"},
		to:    &names{packages: "example.com/shop", kind: "Shop", lower: "shop", plural: "shops", group: "shop.example.com", version: "v1", alias: "shopv1"},
		words: map[string]string{"Memcached": "Shop", "podToMemcached": "podToShop", "MemcachedSpec": "ShopSpec"},
	}
	appToOrder = &renaming{
		from: &names{kind: "App", lower: "app", plural: "apps", group: "app.huolala.cn", version: "v1", alias: "appv1"},
		to:   &names{kind: "Order", lower: "order", plural: "orders", group: "shop.example.com", version: "v1alpha1", alias: "shopv1alpha1"},
	}
)

func TestText(t *testing.T) {
	tests := map[string]struct {
		reason   string
		renaming *renaming
		text     string
		want     string
	}{
		"Kind":       {"the kind begins with a capital letter", memcachedToShop, "a Memcached, its MemcachedSpec, Memcacheds", "a Shop, its ShopSpec, Shops"},
		"Workload":   {"what the pods run stays", memcachedToShop, "runs memcached:1.6-alpine", "runs memcached:1.6-alpine"},
		"Plural":     {"the plural is the kind", memcachedToShop, "memcacheds/status", "shops/status"},
		"CRD":        {"the group is beside it", memcachedToShop, "memcacheds.cache.example.com", "shops.shop.example.com"},
		"APIVersion": {"the group is beside it", memcachedToShop, "cache.example.com/v1alpha1", "shop.example.com/v1"},
		"Annotation": {"the group is beside it", memcachedToShop, "cache.example.com/memcached", "shop.example.com/shop"},
		"Lease":      {"the group is beside it", memcachedToShop, "memcached.cache.example.com", "shop.shop.example.com"},
		"Other":      {"a longer domain is another one", memcachedToShop, "mycache.example.com", "mycache.example.com"},
		"Hyphen":     {"names with hyphens are the operator's", memcachedToShop, "memcached-operator, memcached-", "shop-operator, shop-"},
		"File":       {"as controller-gen names it", memcachedToShop, "bases/cache.example.com_memcacheds.yaml", "bases/shop.example.com_shops.yaml"},
		"Sample":     {"group, version and kind", memcachedToShop, "../config/samples/cache_v1alpha1_memcached.yaml", "../config/samples/shop_v1_shop.yaml"},
		"Identifier": {"comments mention it", memcachedToShop, "podToMemcached returns", "podToShop returns"},
		"Article":    {"a vowel follows", appToOrder, "the status of an App; a new App", "the status of an Order; a new Order"},
		"Label":      {"it is Kubernetes' own", appToOrder, "app.kubernetes.io/name: app-operator", "app.kubernetes.io/name: order-operator"},
		"Group":      {"apps is a group of Kubernetes", appToOrder, "deployments.apps, apps.app.huolala.cn", "deployments.apps, orders.shop.example.com"},
		"Webhook":    {"its path has hyphens in place of dots", memcachedToShop, "path=/validate-cache-example-com-v1alpha1-memcached", "path=/validate-shop-example-com-v1-shop"},
		"Lock":       {"the lease has the group's name", appToOrder, "app.huolala.cn", "shop.example.com"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.renaming.text(tc.text), tc.reason)
		})
	}
}

func TestWebhookMarker(t *testing.T) {
	const marker = "mutating=true,path=/mutate-%s,groups=%s,resources=%s,verbs=create,versions=%s,name=defaulting.%[2]s,admissionReviewVersions=v1alpha1"
	assert.Equal(t, fmt.Sprintf(marker, "shop-example-com-v1-shop", "shop.example.com", "shops", "v1"),
		memcachedToShop.webhookMarker(fmt.Sprintf(marker, "cache-example-com-v1alpha1-memcached", "cache.example.com", "memcacheds", "v1alpha1")),
		"the versions of the reviews are not the kind's")
}

func TestIdentifier(t *testing.T) {
	userToAccount := &renaming{
		from: &names{kind: "DatabaseUser", lower: "databaseuser", plural: "databaseusers"},
		to:   &names{kind: "WebAccount", lower: "webaccount", plural: "webaccounts"},
	}
	for name, want := range map[string]string{
		"DatabaseUserSpec": "WebAccountSpec", "enqueueDatabaseUsers": "enqueueWebAccounts", "databaseUser": "webAccount",
		"databaseuser": "webaccount", "DatabaseUserless": "DatabaseUserless", "user": "user",
	} {
		assert.Equal(t, want, userToAccount.identifier(name))
	}
	for name, want := range map[string]string{"app": "order", "apps": "orders", "Append": "Append", "appendTo": "appendTo", "labelApp": "labelOrder", "appNames": "orderNames"} {
		assert.Equal(t, want, appToOrder.identifier(name))
	}
}
