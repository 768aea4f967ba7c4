package accounts_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

func TestAccountValidate(t *testing.T) {
	tests := map[string]struct {
		account accounts.Account
		want    string // empty if it can be
		reason  string
	}{
		"plain":           {accounts.Account{User: "bob", Host: "%"}, "", "as most are"},
		"80 letters":      {accounts.Account{User: strings.Repeat("é", 80), Host: "%"}, "", "characters count, not bytes"},
		"quotes":          {accounts.Account{User: "o'neil`\"\\", Host: "%"}, "", "any character but a few"},
		"one apostrophe":  {accounts.Account{User: "'", Host: "%"}, "", "it is not between two"},
		"no user":         {accounts.Account{Host: "%"}, "the user name is empty", "the server's anonymous user lets in everybody"},
		"81 letters":      {accounts.Account{User: strings.Repeat("x", 81), Host: "%"}, "the user name is longer than 80 characters", "the servers' limit"},
		"trailing space":  {accounts.Account{User: "bob ", Host: "%"}, "the user name ends with a space, which the server would drop", "it would be bob"},
		"apostrophes":     {accounts.Account{User: "'bob'", Host: "%"}, "the user name begins and ends with an apostrophe; at a login the server would take off both", "nobody could log in"},
		"NUL":             {accounts.Account{User: "bob\x00x", Host: "%"}, "the user name has a NUL in it", "the server reads up to it"},
		"no UTF-8":        {accounts.Account{User: "bob\xbf'", Host: "%"}, "the user name is not UTF-8", "it means something else in each character set"},
		"beyond U+FFFF":   {accounts.Account{User: "bob🔑", Host: "%"}, "the user name has a character beyond U+FFFF in it, which the server cannot store in names", "its tables hold three bytes"},
		"root":            {accounts.Account{User: "root", Host: "%"}, "the user name is root, an account of the server itself", "adopting and deleting it would lock everybody out"},
		"public":          {accounts.Account{User: "Public", Host: "%"}, "the user name is Public, an account of the server itself", "a role; nobody could log in"},
		"no host":         {accounts.Account{User: "bob"}, "the host is empty; % stands for every host", "the server takes it for %"},
		"host's case":     {accounts.Account{User: "bob", Host: "Example.com"}, "the host is not in lower case", "the server stores it so, and it would not be found"},
		"hostile host":    {accounts.Account{User: "bob", Host: "%'"}, "the host may only have letters, digits, and any of . - : % _ in it", "no client has it"},
		"both, user told": {accounts.Account{User: "", Host: ""}, "the user name is empty", "one at a time"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assertInvalid(t, tc.account.Validate(), tc.want, tc.reason) })
	}
}

func TestCanonicalHost(t *testing.T) {
	const notANetwork = "the host is not an IPv4 network such as 10.1.0.0/255.255.0.0"
	tests := map[string]struct{ want, err, reason string }{
		"%":                         {"%", "", "every host"},
		"DB-1.Example.com":          {"db-1.example.com", "", "hosts do not differ in case"},
		"10.0.%":                    {"10.0.%", "", "a pattern"},
		"FE80::1":                   {"fe80::1", "", "an IPv6 address"},
		"10.1.0.0/255.255.0.0":      {"10.1.0.0/255.255.0.0", "", "a network"},
		"0.0.0.0/0.0.0.0":           {"0.0.0.0/0.0.0.0", "", "every IPv4 address"},
		"10.1.0.7/255.255.255.255":  {"10.1.0.7/255.255.255.255", "", "one address"},
		"10.1.0.7/255.255.0.0":      {"", notANetwork, "a bit outside of the mask: the server would let nobody in"},
		"10.1.0.0/255.0.255.0":      {"", notANetwork, "a mask with a hole"},
		"10.1.0.0/16":               {"", notANetwork, "MariaDB does not know this form"},
		"10.1.0.0/":                 {"", notANetwork, "half of one"},
		"/255.0.0.0":                {"", notANetwork, "the other half"},
		"::/255.0.0.0":              {"", notANetwork, "the server knows networks of IPv4 only"},
		"10.0.0.0/255.0.0.0/8":      {"", notANetwork, "two masks"},
		"a b":                       {"", "the host may only have letters, digits, and any of . - : % _ in it", "a space"},
		"bücher.example":            {"", "the host may only have letters, digits, and any of . - : % _ in it", "clients' names are ASCII"},
		strings.Repeat("x", 256):    {"", "the host is longer than 255 characters", "the server's limit"},
		"K.example\u212a":           {"", "the host may only have letters, digits, and any of . - : % _ in it", "in lower case it is a k"},
		"127.0.0.1'@'%":             {"", "the host may only have letters, digits, and any of . - : % _ in it", "an attack"},
		"%`; DROP USER root@`%`; #": {"", "the host may only have letters, digits, and any of . - : % _ in it", "an attack"},
	}
	for host, tc := range tests {
		t.Run(host, func(t *testing.T) {
			got, err := accounts.CanonicalHost(host)
			assert.Equal(t, tc.want, got, tc.reason)
			assertInvalid(t, err, tc.err, tc.reason)
		})
	}
}

func TestPasswordValidate(t *testing.T) {
	tests := map[string]struct{ password, want, reason string }{
		"line end": {"secret\n", "", "it is what the Secret says"},
		"emoji":    {"🔑", "", "passwords are not names"},
		"10 kB":    {strings.Repeat("x", 10<<10), "", "there is no limit here"},
		"empty":    {"", "the password is empty", "everybody could log in"},
		"NUL":      {"canary\x00", "the password has a NUL in it, where many clients end it", "they could not log in"},
		"no UTF-8": {"canary\xff", "the password is not UTF-8", "it means something else in each character set"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assertInvalid(t, accounts.Password(tc.password).Validate(), tc.want, tc.reason)
		})
	}
}

func TestGrantValidate(t *testing.T) {
	read := []string{"SELECT"}
	tests := map[string]struct {
		grant  accounts.Grant
		want   string
		reason string
	}{
		"database":       {accounts.Grant{Database: "shop", Privileges: read}, "", "as most are"},
		"table":          {accounts.Grant{Database: "shop", Table: "items", Privileges: []string{"SELECT", accounts.All}}, "", "All is what tables have"},
		"a star":         {accounts.Grant{Database: "*", Privileges: read}, "", "a database may be called so; it is quoted"},
		"64 letters":     {accounts.Grant{Database: strings.Repeat("é", 64), Privileges: read}, "", "characters count, not bytes"},
		"no database":    {accounts.Grant{Privileges: read}, "the database is empty", "global grants are not for tenants"},
		"system":         {accounts.Grant{Database: "MySQL", Privileges: read}, "the database is MySQL, which belongs to the server", "it holds all password hashes; some servers fold case"},
		"a folder":       {accounts.Grant{Database: "#mysql50#../mysql", Privileges: read}, "the database begins with #mysql50#, by which the server names a folder", "it is not the database's name"},
		"65 letters":     {accounts.Grant{Database: strings.Repeat("x", 65), Privileges: read}, "the database is longer than 64 characters, where each of % _ \\ counts twice", "the server's limit"},
		"40 underscores": {accounts.Grant{Database: strings.Repeat("_", 40), Privileges: read}, "the database is longer than 64 characters, where each of % _ \\ counts twice", "escaped it does not fit into mysql.db"},
		"40 and a table": {accounts.Grant{Database: strings.Repeat("_", 40), Table: "t", Privileges: read}, "", "nothing is escaped then"},
		"trailing space": {accounts.Grant{Database: "shop ", Privileges: read}, "the database ends with a space, which the server would drop", "it would be shop"},
		"table's space":  {accounts.Grant{Database: "shop", Table: "items ", Privileges: read}, "the table ends with a space, which the server would drop", "it would be items"},
		"long table":     {accounts.Grant{Database: "shop", Table: strings.Repeat("x", 65), Privileges: read}, "the table is longer than 64 characters", "the server's limit"},
		"none":           {accounts.Grant{Database: "shop"}, "the privileges are empty", "there is nothing to grant"},
		"not on a table": {accounts.Grant{Database: "shop", Table: "items", Privileges: []string{"EVENT"}}, "the privileges have EVENT among them, which cannot be granted on a table", "the server would refuse it"},
		"grant option":   {accounts.Grant{Database: "shop", Privileges: []string{"GRANT OPTION"}}, "the privileges have one among them that cannot be granted here; there are SELECT, INSERT", "it hands privileges on"},
		"an attack":      {accounts.Grant{Database: "shop", Privileges: []string{"SELECT ON *.* TO x; --"}}, "the privileges have one among them that cannot be granted here; there are SELECT, INSERT", "privileges are not quoted, so they are enumerated"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assertInvalid(t, tc.grant.Validate(), tc.want, tc.reason) })
	}
}

func TestSettingsValidate(t *testing.T) {
	assert.NoError(t, accounts.Settings{}.Validate())
	assert.NoError(t, accounts.Settings{Mark: "DatabaseUser 6129b447-4e43-46ac-83b9-e59dd3cefdae"}.Validate())
	for _, mark := range []accounts.Mark{"/CN=alice", "a'b", "a\x00", accounts.Mark(strings.Repeat("x", 129))} {
		assertInvalid(t, accounts.Settings{Mark: mark}.Validate(), "the mark is not at most 128 letters, digits, spaces and dashes", "a certificate may have it, or it needs quoting")
	}
	assertInvalid(t, accounts.Settings{Require: "tls"}.Validate(), "the requirement is none of none, ssl and x509", "not taken for none")
	assertInvalid(t, accounts.Settings{Limits: accounts.Limits{MaxQueriesPerHour: -1}}.Validate(), "the limits have -1 among them", "no limit is 0")
}

// assertInvalid asserts an InvalidError whose text begins with a text.
func assertInvalid(t *testing.T, err error, want, reason string) {
	t.Helper()
	if want == "" {
		assert.NoError(t, err, reason)
		return
	}
	var invalid *accounts.InvalidError
	if assert.ErrorAs(t, err, &invalid, reason) {
		assert.True(t, strings.HasPrefix(err.Error(), want), "%s: %s", reason, err)
	}
}

func TestSubtract(t *testing.T) {
	table := []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "CREATE VIEW", "SHOW VIEW", "TRIGGER"}
	tests := map[string]struct {
		a, b, want []accounts.Grant
		reason     string
	}{
		"nothing from nothing": {nil, nil, nil, "nothing"},
		"the same in another form": {
			[]accounts.Grant{{Database: "b", Privileges: []string{"INSERT"}}, {Database: "b", Privileges: []string{"SELECT"}}},
			[]accounts.Grant{{Database: "b", Privileges: []string{"SELECT", "INSERT", "SELECT"}}},
			nil, "grants of one database add up",
		},
		"privilege by privilege": {
			[]accounts.Grant{{Database: "b", Privileges: []string{"INSERT", "SELECT", "DELETE"}}},
			[]accounts.Grant{{Database: "b", Privileges: []string{"INSERT", "UPDATE"}}},
			[]accounts.Grant{{Database: "b", Privileges: []string{"SELECT", "DELETE"}}}, "what is left is granted, or revoked",
		},
		"sorted": {
			[]accounts.Grant{{Database: "b", Privileges: []string{"SELECT"}}, {Database: "a", Table: "t", Privileges: []string{"SELECT"}}, {Database: "a", Privileges: []string{"SELECT"}}},
			nil,
			[]accounts.Grant{{Database: "a", Privileges: []string{"SELECT"}}, {Database: "a", Table: "t", Privileges: []string{"SELECT"}}, {Database: "b", Privileges: []string{"SELECT"}}},
			"a status that is the same each time costs no write",
		},
		"a table is not its database": {
			[]accounts.Grant{{Database: "a", Table: "t", Privileges: []string{"SELECT"}}},
			[]accounts.Grant{{Database: "a", Privileges: []string{"SELECT"}}},
			[]accounts.Grant{{Database: "a", Table: "t", Privileges: []string{"SELECT"}}}, "the server keeps them apart",
		},
		"all of a table": {
			[]accounts.Grant{{Database: "a", Table: "t", Privileges: []string{accounts.All}}},
			nil,
			[]accounts.Grant{{Database: "a", Table: "t", Privileges: table}}, "what a table has",
		},
		"all but one": {
			[]accounts.Grant{{Database: "a", Privileges: []string{accounts.All}}},
			[]accounts.Grant{{Database: "a", Privileges: accounts.Privileges(false)[1:]}},
			[]accounts.Grant{{Database: "a", Privileges: []string{"SELECT"}}}, "All is the sum of the others",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, accounts.Subtract(tc.a, tc.b), tc.reason) })
	}
}

// TestFingerprintDiffers uses the hash of "swordfish" that MariaDB has stored.
func TestFingerprintDiffers(t *testing.T) {
	stored := accounts.NewFingerprint("mysql_native_password", "*FC48AB2E7C214BC45A9E6B66C46016F8A53E5A28")
	assert.False(t, stored.Differs("swordfish"))
	assert.True(t, stored.Differs("marlin"))
	assert.False(t, accounts.NewFingerprint("ed25519", "anything").Differs("marlin"), "it cannot tell")
}
