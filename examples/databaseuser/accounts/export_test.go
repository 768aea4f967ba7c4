package accounts

// NewInServersMode is New without our own SQL mode, to test what must hold in every mode.
func NewInServersMode(o Options) (*Client, error) { return newClient(o, "") }

// Statements are what the client sends for an account that is created, granted something and dropped.
func Statements(a Account, p Password, g Grant) (create, granted, drop string) {
	return createUser(a, p, Settings{}), grant(a, g), dropUser(a)
}

// Pattern is how a database's name is stored.
var Pattern = pattern
