package accounts_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// attempt is what a user may write to a DatabaseUser and its Secret.
type attempt struct {
	account  accounts.Account
	password string
	database string
}

// fragments are parts of attacks.
var fragments = []string{
	// ends of literals, names and statements
	"'", "''", `"`, `""`, "`", "``", `\`, `\\`, `\'`, `\"`, "\\`", `'\`, "`\\", "';", "`;", ";", "@", "'@'", "`@`", "'@'%'", "`@`%`", "(", ")", ",", "=", "?", ":x",
	// comments
	"--", "-- ", "#", "/*", "*/", "/*!", "/*!50000 ", "/*M! ", "*/ ", "-- \n",
	// statements
	"' OR '1'='1", "'; DROP USER root@localhost; -- ", "`; DROP USER `root`@`localhost`; -- ", "` IDENTIFIED BY ''; -- ", "' REQUIRE NONE; -- ",
	"' IDENTIFIED VIA unix_socket -- ", "\\'; FLUSH PRIVILEGES; #", "x'; GRANT ALL ON *.* TO `x`@`%` WITH GRANT OPTION; -- ", "`, `root`@`localhost",
	"', 'root'@'localhost", "`@`%` ACCOUNT LOCK -- ", "'||(SELECT 1)||'", "${jndi:x}", "$(id)", "%s", "%d%n", "{{.}}", "DELIMITER //\n", "\nQUIT\n",
	// control characters, white space
	"\x00", "\x01", "\x08", "\x1a", "\x7f", "\t", "\n", "\r\n", "\v", "\f", " ", "  ", "\u00a0", "\u2028", "\u3000", "\ufeff",
	// character sets: bytes that take the next one along in GBK, Big5 or Shift-JIS, or are not UTF-8 at all
	"\xbf'", "\xbf\\'", "\xbf`", "\x81\\", "\xe0\x80\xa7", "\xc0\xa7", "\xc0\xe0", "\xff", "\xed\xa0\x80", "\xf0\x9f", "縗'", "表\\", "ソ`",
	// what collations hold for the same; what folds, combines or looks alike
	"e", "E", "é", "É", "e\u0301", "ß", "ss", "SS", "İ", "i", "ı", "ﬁ", "Ａ", "а", "a\u200d", "\u202e", "ʼ", "＇", "｀", "\u2019", "\uffff", "\ue000",
	"🔑", "𝒜", "\U0010ffff",
	// patterns
	"%", "_", `\%`, `\_`, "*", "*.*", ".", "..", "/", "../",
	// names with a meaning
	"root", "mysql", "sys", "PUBLIC", "public", "CURRENT_USER", "current_user()", "mariadb.sys", "operator", "NULL", "information_schema", "#mysql50#", "localhost",
}

var hosts = []string{
	"%", "127.0.0.1", "127.%", "127.0.0._", "127.0.0.0/255.255.255.0", // which let us in
	"localhost", "10.0.0.%", "::1", "2001:db8::%", "example.com", "%.example.com", "Example.COM", "a_b-c.example", "10.1.0.0/255.255.0.0",
}

// corpus returns n attempts, always the same: each fragment as a name, a password and a database, and then mixtures. All accounts
// differ.
func corpus(n int) []attempt {
	r := rand.New(rand.NewPCG(2026, 4))
	attempts := make([]attempt, 0, n)
	seen := map[accounts.Account]bool{}
	for i, fragment := range fragments {
		attempts = append(attempts,
			attempt{accounts.Account{User: fragment, Host: "%"}, "password", "shop"},
			attempt{accounts.Account{User: fmt.Sprint("fragment-", i), Host: "%"}, fragment, fragment})
		seen[attempts[len(attempts)-2].account] = true
	}
	for i := 0; len(attempts) < n; i++ {
		a := attempt{accounts.Account{User: fmt.Sprint("user-", i), Host: hosts[r.IntN(len(hosts))]}, fmt.Sprint("password-", i), fmt.Sprint("shop-", i)}
		kind := i % 8
		if kind <= 2 || kind == 7 {
			a.account.User = hostile(r)
		}
		if kind == 3 || kind == 4 || kind == 7 {
			a.password = hostile(r)
		}
		if kind == 5 || kind == 7 && r.IntN(2) == 0 {
			a.account.Host = hostileHost(r)
		}
		if kind == 6 || kind == 7 {
			a.database = hostile(r)
		}
		if !seen[a.account] {
			seen[a.account] = true
			attempts = append(attempts, a)
		}
	}
	return attempts
}

func hostile(r *rand.Rand) string {
	switch r.IntN(40) {
	case 0:
		return random(r, 1+r.IntN(40))
	case 1:
		return strings.Repeat(fragments[r.IntN(len(fragments))], 1+r.IntN(80))
	case 2:
		return (strings.Repeat("x", r.IntN(100)) + strings.Repeat(fragments[r.IntN(len(fragments))], 10<<10))[:10<<10]
	default:
		var text strings.Builder
		for range 1 + r.IntN(5) {
			text.WriteString(fragments[r.IntN(len(fragments))])
			if r.IntN(3) == 0 {
				fmt.Fprintf(&text, "%x", r.IntN(1<<16))
			}
		}
		return text.String()
	}
}

func hostileHost(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return hostile(r)
	}
	const letters = "aB0.-:%_/"
	var host strings.Builder
	for range r.IntN(20) {
		host.WriteByte(letters[r.IntN(len(letters))])
	}
	return host.String()
}

// random returns random bytes.
func random(r *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	return string(text)
}
