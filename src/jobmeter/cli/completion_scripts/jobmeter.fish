# Completion of `jobmeter` for fish. What a word may become, `jobmeter __complete` says: a line a candidate with its
# description, and :files, :directories or :commands where such names go too.
function __jobmeter_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    for line in ($program __complete $words "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :directories
                __fish_complete_directories "$current"
            case :commands
                complete -C "$current"
            case '*'
                echo $line
        end
    end
end
complete -c jobmeter -f -a '(__jobmeter_complete)'
