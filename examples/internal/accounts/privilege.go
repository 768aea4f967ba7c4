package accounts

// All stands for all [Privileges], or on a table for all that a table has.
const All = "ALL"

// privilege is a privilege that may be granted, and where the server stores it.
type privilege struct {
	name   string
	column string // the column of mysql.db
	member string // the member of the set mysql.tables_priv.Table_priv; empty if tables have no such privilege
}

// privileges does not contain GRANT OPTION and global privileges.
var privileges = []privilege{
	{"SELECT", "Select_priv", "Select"},
	{"INSERT", "Insert_priv", "Insert"},
	{"UPDATE", "Update_priv", "Update"},
	{"DELETE", "Delete_priv", "Delete"},
	{"CREATE", "Create_priv", "Create"},
	{"DROP", "Drop_priv", "Drop"},
	{"REFERENCES", "References_priv", "References"},
	{"INDEX", "Index_priv", "Index"},
	{"ALTER", "Alter_priv", "Alter"},
	{"CREATE TEMPORARY TABLES", "Create_tmp_table_priv", ""},
	{"LOCK TABLES", "Lock_tables_priv", ""},
	{"EXECUTE", "Execute_priv", ""},
	{"CREATE VIEW", "Create_view_priv", "Create View"},
	{"SHOW VIEW", "Show_view_priv", "Show view"},
	{"CREATE ROUTINE", "Create_routine_priv", ""},
	{"ALTER ROUTINE", "Alter_routine_priv", ""},
	{"EVENT", "Event_priv", ""},
	{"TRIGGER", "Trigger_priv", "Trigger"},
}

// Privileges returns the privileges that may be granted on a database, or on a table, in the server's order. All is not among
// them.
func Privileges(onTable bool) []string {
	var names []string
	for _, p := range privileges {
		if !onTable || p.member != "" {
			names = append(names, p.name)
		}
	}
	return names
}
