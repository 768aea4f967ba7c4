package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

var kind = userv1alpha1.GroupVersion.WithKind("DatabaseUser")

// untyped returns a DatabaseUser with a spec in YAML.
func (n *tenant) untyped(t *testing.T, spec string) *unstructured.Unstructured {
	return n.Untyped(kind, fromYAML(t, spec))
}

// fromYAML parses a spec. An empty text stands for no spec.
func fromYAML(t *testing.T, spec string) any {
	t.Helper()
	var content any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &content))
	return content
}

func TestSchema(t *testing.T) {
	n := newTenant(t)
	tests := map[string]struct {
		spec   string
		want   string // in the error; empty if it is accepted
		reason string
	}{
		"article's":          {"{user: john, password: {name: secret, key: pw}}", "", "such objects are there already"},
		"no spec":            {"", "", "a condition says what is missing"},
		"no user":            {"{password: {name: secret, key: pw}}", "", "a condition says what is missing"},
		"no password":        {"{user: john}", "", "a condition says what is missing"},
		"password in clear":  {"{user: john, password: swordfish}", "spec.password: Invalid value", "everybody who may read the object would know it"},
		"long user":          {"{user: " + strings.Repeat("x", 81) + "}", "spec.user: Too long", "no server takes it"},
		"80 letters":         {"{user: " + strings.Repeat("é", 80) + "}", "", "characters count, not bytes"},
		"hosts":              {`{hosts: ["%", 10.0.0._, "10.0.0.0/255.0.0.0", "::1", Example.com]}`, "", "the forms that there are"},
		"no hosts":           {"{hosts: []}", "spec.hosts in body should have at least 1 items", "an account without a host is none"},
		"hostile host":       {`{hosts: ["%'@'%"]}`, "spec.hosts[0] in body should match", "no client has it"},
		"twice the same":     {`{hosts: ["%", "%"]}`, "Duplicate value", "a slip"},
		"too many hosts":     {`{hosts: [` + strings.Repeat("h,", 33) + `]}`, "must have at most 32 items", "each is an account"},
		"database":           {"{grants: [{privileges: [SELECT, CREATE TEMPORARY TABLES], database: shop}]}", "", "as most are"},
		"table":              {"{grants: [{privileges: [ALL], database: shop, table: items}]}", "", "what a table has"},
		"not on a table":     {"{grants: [{privileges: [SELECT, EVENT], database: shop, table: items}]}", "cannot be granted on a table", "the server would refuse it"},
		"grant option":       {"{grants: [{privileges: [GRANT OPTION], database: shop}]}", "Unsupported value", "it hands privileges on"},
		"lower case":         {"{grants: [{privileges: [select], database: shop}]}", "Unsupported value", "one way to write it"},
		"no privileges":      {"{grants: [{privileges: [], database: shop}]}", "should have at least 1 items", "there is nothing to grant"},
		"no database":        {"{grants: [{privileges: [SELECT]}]}", "spec.grants[0].database: Required value", "global grants are not for tenants"},
		"empty database":     {`{grants: [{privileges: [SELECT], database: ""}]}`, "spec.grants[0].database in body should be at least 1 chars long", "as if it were missing"},
		"server's database":  {"{grants: [{privileges: [SELECT], database: MySQL}]}", "this database belongs to the server", "it holds all password hashes"},
		"negative limit":     {"{limits: {maxUserConnections: -1}}", "should be greater than or equal to 0", "no limit is 0"},
		"limit overflows":    {"{limits: {maxUserConnections: 4294967296}}", "spec.limits.maxUserConnections", "the operator could not read any DatabaseUser any more"},
		"other requirement":  {"{require: tls}", "Unsupported value", "it would be taken for none"},
		"other policy":       {"{deletionPolicy: Keep}", "Unsupported value", "it would be taken for Delete"},
		"adoption as text":   {`{adopt: "yes"}`, "spec.adopt", "YAML quotes slip in"},
		"optional password":  {"{user: john, password: {name: secret, key: pw, optional: true}}", "", "it is ignored"},
		"password of no key": {"{user: john, password: {name: secret}}", "spec.password.key: Required value", "there is no default"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n.AssertAdmission(t, kind, fromYAML(t, tc.spec), tc.want, tc.reason)
		})
	}
}

// TestPrivileges compares the enumeration in the schema with the privileges that package accounts grants.
func TestPrivileges(t *testing.T) {
	n := newTenant(t)
	for _, p := range append(accounts.Privileges(false), accounts.All) {
		assert.NoError(t, n.Create(t.Context(), n.untyped(t, "{grants: [{privileges: ["+p+"], database: shop}]}")))
		onTable := accounts.Grant{Database: "shop", Table: "items", Privileges: []string{p}}
		err := n.Create(t.Context(), n.untyped(t, "{grants: [{privileges: ["+p+"], database: shop, table: items}]}"))
		assert.Equal(t, onTable.Validate() == nil, err == nil, "%s: %v", p, err)
	}
	err := n.Create(t.Context(), n.untyped(t, "{grants: [{privileges: [NONE], database: shop}]}"))
	for _, p := range append(accounts.Privileges(false), accounts.All) {
		assert.ErrorContains(t, err, `"`+p+`"`)
	}
	_, listed, _ := strings.Cut(err.Error(), "supported values")
	assert.Equal(t, len(accounts.Privileges(false))+1, strings.Count(listed, `"`)/2)
}

func TestDefaultsAndColumns(t *testing.T) {
	n := newTenant(t)
	u := n.untyped(t, "{user: john}")
	u.SetName("john")
	u.SetGenerateName("")
	u.SetLabels(map[string]string{userv1alpha1.TargetLabel: "Shop"})
	require.NoError(t, n.Create(t.Context(), u))
	assert.Equal(t, map[string]any{"user": "john", "hosts": []any{"%"}, "require": "none", "deletionPolicy": "Delete"}, u.Object["spec"])

	// As the article's operator left it: a reason with spaces, and a second type beside Ready.
	var status map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(`{conditions: [
		{type: Ready, status: "True", reason: Provision Succeeded, message: The user provisioning has succeeded.},
		{type: NotReady, status: "False", reason: Provision Failed, message: "", lastUpdateTime: "2020-01-01T00:00:00Z"}]}`), &status))
	u.Object["status"] = status
	require.NoError(t, n.Status().Update(t.Context(), u))

	fields := strings.Fields(n.Kubectl(t, "get", "dbu"))
	assert.Equal(t, "NAME USER TARGET READY REASON MESSAGE AGE john john Shop True Provision Succeeded The user provisioning has succeeded.",
		strings.Join(fields[:len(fields)-1], " "))
	crd := n.Kubectl(t, "get", "crd", "databaseusers.mygroup.handsomeguy.cn", "--output", `jsonpath={.metadata.annotations.helm\.sh/resource-policy}`)
	assert.Equal(t, "keep", crd)
}
