package accounts_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

func TestExpired(t *testing.T) {
	const longAgo = "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.password_last_changed', UNIX_TIMESTAMP() - 3 * 86400) WHERE User = 'expiring'"
	tests := map[string]struct {
		reason     string
		statements []string
		want       bool
	}{
		"new":                      {"The password has just been set.", nil, false},
		"by hand":                  {"Somebody has said so.", []string{"ALTER USER expiring PASSWORD EXPIRE"}, true},
		"by its lifetime":          {"It was set three days ago.", []string{"ALTER USER expiring PASSWORD EXPIRE INTERVAL 2 DAY", longAgo}, true},
		"within its lifetime":      {"It was set three days ago.", []string{"ALTER USER expiring PASSWORD EXPIRE INTERVAL 4 DAY", longAgo}, false},
		"by the server's lifetime": {"The account has none of its own.", []string{"SET GLOBAL default_password_lifetime = 2", longAgo}, true},
		"default":                  {"The account asks for the server's.", []string{"SET GLOBAL default_password_lifetime = 2", "ALTER USER expiring PASSWORD EXPIRE DEFAULT", longAgo}, true},
		"never":                    {"The account has a rule of its own.", []string{"SET GLOBAL default_password_lifetime = 2", "ALTER USER expiring PASSWORD EXPIRE NEVER", longAgo}, false},
		"the server has none":      {"It is 0 by default.", []string{longAgo}, false},
	}
	s := startServer(t) // its lifetime is of all accounts
	root, db := openRoot(t, s), connect(t, s)
	a := accounts.Account{User: "expiring", Host: "%"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, db.Drop(t.Context(), a))
			require.NoError(t, db.Create(t.Context(), a, "first", accounts.Settings{}))
			execute(t, root, "SET GLOBAL default_password_lifetime = 0")
			execute(t, root, tc.statements...)
			execute(t, root, "FLUSH PRIVILEGES")
			state, err := db.Lookup(t.Context(), a)
			require.NoError(t, err)
			assert.Equal(t, tc.want, state.Expired, tc.reason)
			require.NoError(t, db.SetPassword(t.Context(), a, "second"))
			state, err = db.Lookup(t.Context(), a)
			require.NoError(t, err)
			assert.False(t, state.Expired, "another password ends it")
		})
	}
}
