"""The MCP server: the core, spoken."""
