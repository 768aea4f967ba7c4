package accounts_test

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// TestFingerprintOfOtherPlugins checks that a fingerprint claims nothing about a password whose plugin it does not know.
func TestFingerprintOfOtherPlugins(t *testing.T) {
	const stored = "*D7A6C1A1AF8D3E6A5E0D4F4F4C3E1F5B1A2C3D4E"
	for _, plugin := range []string{"caching_sha2_password", "sha256_password", "ed25519", "unix_socket", "auth_socket", ""} {
		f := accounts.NewFingerprint(plugin, stored)
		assert.False(t, f.Differs("swordfish"), plugin)
		assert.False(t, f.Is("swordfish"), plugin)
		assert.Equal(t, accounts.NewFingerprint(plugin, stored), f)
		assert.NotEqual(t, accounts.NewFingerprint("mysql_native_password", stored), f, "a change of the plugin is a change")
	}
}

// TestTooLongForMySQL checks that a name of 33 characters, which MariaDB accepts, is left to the server, and that MySQL's words
// for its refusal are kept.
func TestTooLongForMySQL(t *testing.T) {
	name := strings.Repeat("x", 33)
	assert.NoError(t, accounts.Account{User: name, Host: "%"}.Validate())
	message := "String '" + name + "' is too long for user name (should be no longer than 32)"
	err := accounts.Refusal(&mysql.MySQLError{Number: 1470, SQLState: [5]byte{'H', 'Y', '0', '0', '0'}, Message: message})
	assert.EqualError(t, err, "the database refused: error 1470 (HY000): "+message)
}
